// Weights to smaller formats: pure functions, all arithmetic in float32. Values must be finite.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/thread_pool.h"
#include "tensor/buffer.h"
#include "tensor/weight_view.h"

namespace blockdraft {

// FP8 E4M3 with one scale a row: fl32(largest magnitude * fl32(1 / 448)), so that the largest weight gets the largest
// code; 1 where that is zero.
float fp8_row_scale(std::span<const float> row);

// codes[k] = the E4M3 nearest to fl32(row[k] / scale), ties to even. codes has the row's length.
void quantize_row_fp8(std::span<const float> row, float scale, std::span<uint8_t> codes);

// NVFP4. The divisor of a whole tensor (compressed-tensors' weight_global_scale): fl32(448 * 6 / largest magnitude), so
// that the group of the largest weight gets the largest scale, 448, and that weight the largest code, 6. 1 for a tensor
// of zeros; at most 2^126, so that its reciprocal is a normal float.
float nvfp4_divisor(float largest);

// For each group of 16 elements, with m its largest magnitude:
//   scale code = the E4M3 nearest to fl32(fl32(m / 6) * divisor)
//   code       = the E2M1 nearest to fl32(fl32(element * divisor) / scale), 0 where the scale is 0; ties to even
// The row's length is a multiple of 16; packed has half of it (low half of a byte first), group_scales a sixteenth.
void quantize_row_nvfp4(std::span<const float> row, float divisor, std::span<uint8_t> packed,
                        std::span<uint8_t> group_scales);

float largest_magnitude(std::span<const float> values);  // 0 for none

// Whether a tensor of two dimensions is one that quantizing a model quantizes: the linear weights of layers
// (NAME_proj.weight) and fc.weight. Heads have such names too ("markov_head.gate_proj.weight"), and are not.
bool is_quantizable(std::string_view name);

// A matrix that was made in memory, and the owner of its bytes. The view stays good when the object is moved.
struct QuantizedMatrix {
  WeightView view;  // without bias
  std::vector<uint8_t> codes;
  std::vector<float> row_scales;      // FP8
  std::vector<uint8_t> group_scales;  // NVFP4
  Buffer pack;                        // int8: codes and scales; other formats: codes (nn/weight_packs.h)

  size_t size_bytes() const {
    return codes.size() + row_scales.size() * sizeof(float) + group_scales.size() + pack.size_bytes();
  }
};
// Of a weight in any format, by its values. On all of the threads; without a pool on this one.
QuantizedMatrix round_to_bf16(const WeightView& weight, ThreadPool* threads = nullptr);  // to nearest even
QuantizedMatrix quantize_fp8(const WeightView& weight, ThreadPool* threads = nullptr);
QuantizedMatrix quantize_nvfp4(const WeightView& weight, ThreadPool* threads = nullptr);  // in_features % 16 is 0

}  // namespace blockdraft
