// Activations in memory: float, or BF16 in uint16_t. A NaN becomes the same BF16 everywhere.
#pragma once

#include <cstdint>

#include "ops/cuda/mma.cuh"
#include "tensor/codec.h"

namespace blockdraft::cu {

__device__ inline float as_float(float value) { return value; }
__device__ inline float as_float(uint16_t bf16) { return float_from_bf16(bf16); }

__device__ inline void store(float* to, float value) { *to = value; }
__device__ inline void store(uint16_t* to, float value) { *to = static_cast<uint16_t>(pack_bf16(value, value)); }

}  // namespace blockdraft::cu
