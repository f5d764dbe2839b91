// Weights to int8 with an F16 scale for 32 columns, and into the order that products read (tensor/int8_pack.h). All
// arithmetic in float32; values must be finite.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/thread_pool.h"
#include "blockdraft/result.h"
#include "nn/quantize.h"
#include "tensor/weight_view.h"

namespace blockdraft {

// For each group of 32 elements, with m its largest magnitude:
//   scale = the F16 nearest to fl32(m / 127), at most 65504
//   code  = fl32(element / scale) to nearest even, within -127 .. 127; 0 where the scale is 0
// The row's length is a multiple of 32; codes has the same, scales, as F16 codes, a thirty-second of it.
void quantize_row_int8(std::span<const float> row, std::span<int8_t> codes, std::span<uint16_t> scales);

// Of a weight in any format, by its values; in_features is a multiple of 32. On all of the threads; without a pool on
// this one. Errors: out_of_memory.
Result<QuantizedMatrix> quantize_int8(const WeightView& weight, ThreadPool* threads = nullptr);

// The same of codes and F16 scales as a file has them: [out_features, in_features] and [out_features, in_features /
// 32], neither of them aligned.
Result<QuantizedMatrix> pack_int8(const std::byte* codes, const std::byte* scales, int64_t out_features,
                                  int64_t in_features, ThreadPool* threads = nullptr);

}  // namespace blockdraft
