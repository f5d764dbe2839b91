// Runs of stored weights to float32, exactly as tensor/codec.h defines them. Declared here because linear and embedding
// share it; loops without branches, so that they vectorize.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/dtype.h"

namespace blockdraft::cpu {

// values[i] = the i-th code at codes, i < count. The row scale is not applied. dtype: one that a WeightView may have.
void decode(DType dtype, const std::byte* codes, int64_t count, float* values);

}  // namespace blockdraft::cpu
