// Choosing the largest value as argmax.h defines it, by integers: the order in which candidates meet does not matter.
#pragma once

#include <cstdint>

namespace blockdraft::cu {

using BestKey = unsigned long long;

inline constexpr BestKey kNotANumberKey = ~BestKey{0};
inline constexpr BestKey kNoKey = 0;  // below that of every value

// In the order of the floats, equal for equal ones.
__device__ inline uint32_t ordered_bits(float value) {
  const uint32_t bits = __float_as_uint(value + 0.0f);  // -0 is 0
  return (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
}

// The larger of two keys is that of the larger value, of equal ones of the lower index; of NaN before all.
__device__ inline BestKey best_key(float value, uint32_t index) {
  if (value != value) return kNotANumberKey;
  return static_cast<BestKey>(ordered_bits(value)) << 32 | (0xffffffffu - index);
}

__device__ inline uint32_t index_of(BestKey key) { return 0xffffffffu - static_cast<uint32_t>(key); }

// kNotANumber (ops/argmax.h) is -1.
__device__ inline int32_t choice_of(BestKey key) {
  return key == kNotANumberKey ? -1 : static_cast<int32_t>(index_of(key));
}

__device__ inline BestKey better(BestKey a, BestKey b) { return a > b ? a : b; }

// Of all threads of a warp, in each of them.
__device__ inline BestKey best_of_warp(BestKey key) {
  for (int distance = 16; distance > 0; distance /= 2) key = better(key, __shfl_xor_sync(~0u, key, distance));
  return key;
}

// Of all threads of a block of whole warps, in thread 0. Ends with no barrier: call it once a kernel, or put one
// between.
__device__ inline BestKey best_of_block(BestKey key) {
  __shared__ BestKey warps[32];
  key = best_of_warp(key);
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = key;
  __syncthreads();
  if (threadIdx.x < 32) key = best_of_warp(threadIdx.x < blockDim.x / 32 ? warps[threadIdx.x] : kNoKey);
  return key;
}

}  // namespace blockdraft::cu
