// How one weight is stored, decided from the tensors beside it and not from quantization_config (spec 3.5).
//
//   NVFP4, ModelOpt             W (U8), W_scale (F8_E4M3), W_scale_2: a multiplier
//   NVFP4, compressed-tensors   W_packed (U8), W_scale (F8_E4M3), W_global_scale: a divisor
//   FP8                         W (F8_E4M3), W_scale or W_scale_inv: a multiplier in either case
//   int8, compressed-tensors    W (I8), W_scale (F16) of 32 columns: a multiplier
//   F32, F16, BF16              W alone
#pragma once

#include <string>
#include <vector>

#include "blockdraft/result.h"
#include "checkpoint/checkpoint.h"

namespace blockdraft {

enum class WeightScheme { unscaled, fp8, nvfp4, int8 };

// The tensors of one weight, by their full names.
struct WeightTensors {
  WeightScheme scheme = WeightScheme::unscaled;
  std::string codes;
  std::string scale;                 // empty if unscaled
  std::string global_scale;          // NVFP4
  bool global_is_divisor = false;    // compressed-tensors
  std::vector<std::string> ignored;  // scales of activations: weights alone are quantized here
};

// Whether the checkpoint has a weight of this name, in whatever format.
bool has_weight(const Checkpoint& checkpoint, const std::string& name);

// The tensors of the checkpoint that belong to a weight of this name by theirs, of whatever format and whether or not
// they go together.
std::vector<std::string> tensors_of(const Checkpoint& checkpoint, const std::string& name);

// `name` is W above: "fc.weight", or a parameter's name. Errors: not_found; mismatch for tensors of both NVFP4
// families, two scales of one kind, or a scale that W's type does not take; not_found for a scale that it needs;
// unsupported for a type that no kernel reads.
Result<WeightTensors> find_weight(const Checkpoint& checkpoint, const std::string& name);

// "F32", "F8_E4M3", "I8, a scale for 32 columns", "NVFP4 (ModelOpt)", "NVFP4 (compressed-tensors)": what the codes are.
std::string describe(const Checkpoint& checkpoint, const WeightTensors& tensors);

// What one scale of an FP8 weight covers.
enum class Fp8Scales { tensor, row, block };
const char* name_of(Fp8Scales scales);  // "one scale", "a scale a row", "a scale a 128x128 block"

// By the shape of the scale: [] or [1], [out] or [out, 1], [ceil(out / 128), ceil(in / 128)]. Where two of them agree
// (one row, one block), so do the values. Errors: mismatch.
Result<Fp8Scales> fp8_scales(const Checkpoint& checkpoint, const std::string& scale_name, int64_t out_features,
                             int64_t in_features);

}  // namespace blockdraft
