// Stored weights to float32, as tensor/weight_view.h defines their values. Declared here because linear, embedding and
// the candidate walk share it; loops without branches, so that they vectorize.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/weight_view.h"

namespace blockdraft::cpu {

// values[i] = element (row, first + i) for i < count, block and group scales applied, the row scale not: a product
// applies that one to its sum. `first` is a multiple of kScaleBlock, count of kScaleGroup for NVFP4,
// of kInt8Group for I8.
void decode(const WeightView& weight, int64_t row, int64_t first, int64_t count, float* values);

// All of a row with its scale: a table's row.
void decode_row(const WeightView& weight, int64_t row, float* values);

// values[i] = the i-th code at codes, i < count, without any scale. dtype: F32, F16, BF16 or F8_E4M3.
void decode_codes(DType dtype, const std::byte* codes, int64_t count, float* values);

}  // namespace blockdraft::cpu
