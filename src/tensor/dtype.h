// Element types, by the names that safetensors headers use.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace blockdraft {

enum class DType { f32, f16, bf16, f8_e4m3, f64, i64, i32, i16, i8, u8, boolean };

size_t size_of(DType dtype);       // bytes an element
const char* name_of(DType dtype);  // "F32", "BF16", "F8_E4M3", ...
std::optional<DType> dtype_from_name(std::string_view name);

}  // namespace blockdraft
