// Finding one's way in a BatchView, and sums over the threads of a warp or block in a fixed order.
#pragma once

#include <cstdint>

#include "tensor/batch_view.h"

namespace blockdraft::cu {

// The sequence of a row, in every thread of the block; -1 for a row of none, in a graph that is replayed with fewer
// rows than it was captured with. Every thread looks at some sequences; one of them finds it. Once a kernel.
__device__ inline int32_t sequence_of_row(const BatchView& batch, int32_t row) {
  __shared__ int32_t found;
  if (threadIdx.x == 0) found = -1;
  __syncthreads();
  for (int32_t s = static_cast<int32_t>(threadIdx.x); s < batch.num_sequences; s += static_cast<int32_t>(blockDim.x)) {
    if (batch.first_row[s] <= row && row < batch.first_row[s + 1]) found = s;
  }
  __syncthreads();
  return found;
}

// The same for a warp by itself: in every lane, as often as one likes.
__device__ inline int32_t sequence_of_row_by_warp(const BatchView& batch, int32_t row) {
  int32_t found = -1;
  for (int32_t s = static_cast<int32_t>(threadIdx.x) % 32; s < batch.num_sequences; s += 32) {
    if (batch.first_row[s] <= row && row < batch.first_row[s + 1]) found = s;
  }
  return __reduce_max_sync(~0u, found);
}

// The lanes' values added in a tree that depends on nothing; the same bits in every lane.
__device__ inline float sum_of_warp(float value) {
  for (int distance = 16; distance > 0; distance /= 2) value += __shfl_xor_sync(~0u, value, distance);
  return value;
}

// Of a block of whole warps, the same bits in every thread. Once a kernel.
__device__ inline float sum_of_block(float value) {
  __shared__ float warps[32];
  value = sum_of_warp(value);
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = value;
  __syncthreads();
  const unsigned lane = threadIdx.x % 32;
  return sum_of_warp(lane < blockDim.x / 32 ? warps[lane] : 0.0f);
}

}  // namespace blockdraft::cu
