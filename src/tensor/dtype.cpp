#include "tensor/dtype.h"

#include <array>

#include "base/check.h"

namespace blockdraft {
namespace {

struct Entry {
  DType dtype;
  const char* name;
  size_t size_bytes;
};

constexpr std::array kEntries = {
    Entry{DType::f32, "F32", 4},         Entry{DType::f16, "F16", 2},      Entry{DType::bf16, "BF16", 2},
    Entry{DType::f8_e4m3, "F8_E4M3", 1}, Entry{DType::f64, "F64", 8},      Entry{DType::i64, "I64", 8},
    Entry{DType::i32, "I32", 4},         Entry{DType::i16, "I16", 2},      Entry{DType::i8, "I8", 1},
    Entry{DType::u8, "U8", 1},           Entry{DType::boolean, "BOOL", 1},
};

const Entry& entry(DType dtype) {
  for (const Entry& candidate : kEntries) {
    if (candidate.dtype == dtype) return candidate;
  }
  CHECK(false && "every DType has an entry");
}

}  // namespace

size_t size_of(DType dtype) { return entry(dtype).size_bytes; }
const char* name_of(DType dtype) { return entry(dtype).name; }

std::optional<DType> dtype_from_name(std::string_view name) {
  for (const Entry& candidate : kEntries) {
    if (name == candidate.name) return candidate.dtype;
  }
  return std::nullopt;
}

}  // namespace blockdraft
