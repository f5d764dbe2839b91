// Makes a smaller copy of a model folder, target or drafter.
//
//   auto status = blockdraft::quantize_folder("Qwen3-8B-DFlash", "Qwen3-8B-DFlash-FP8",
//   blockdraft::QuantizedFormat::fp8);
#pragma once

#include <filesystem>
#include <optional>
#include <string_view>

#include "blockdraft/result.h"

namespace blockdraft {

enum class QuantizedFormat {
  fp8,    // E4M3, one scale a row
  nvfp4,  // E2M1, one E4M3 scale for 16 elements, one scale a tensor
  int8,   // one F16 scale for 32 elements
};
std::optional<QuantizedFormat> quantized_format_from_name(std::string_view name);  // "fp8", "nvfp4", "int8"

// Writes `out`: model.safetensors, config.json with a quantization_config of compressed-tensors, and copies of the
// other .json, .txt, .model and .jinja files of `in`. The linear weights of the layers (NAME_proj.weight of two
// dimensions) and fc.weight are quantized, rows rounded to nearest even (src/nn/quantize.h, quantize_int8.h); norms,
// embeddings, heads, convolutions and codebooks are copied as they are. `in` is read as it is mapped: memory holds a
// row of it at a time. `out` appears only once it is complete. Errors: all of opening `in`; invalid_argument if `out`
// exists; unsupported for a folder that is quantized already, has nothing to quantize, or, for NVFP4, rows that are not
// a multiple of 16, for int8 of 32; numeric for a weight that is not finite; io_error.
Status quantize_folder(const std::filesystem::path& in, const std::filesystem::path& out, QuantizedFormat format);

}  // namespace blockdraft
