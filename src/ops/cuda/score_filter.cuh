// The filters of ops/sample.h on one row of scores, by a block of kFilterThreads. Each sets the scores of the ids that
// it drops to -infinity. Weights are integers, whose sums are the same in any order.
#pragma once

#include <cstdint>

#include "ops/cuda/best_key.cuh"

namespace blockdraft::cu {

inline constexpr int kFilterThreads = 1024;

using Weight = unsigned long long;

// Weights exp(score - max) in units of 2^-40: sums of 2^23 of them are exact.
struct ExpWeight {
  float max;
  __device__ Weight operator()(float score) const { return __float2ull_rn(expf(score - max) * 0x1p40f); }
};

struct UnitWeight {
  __device__ Weight operator()(float) const { return 1; }
};

__device__ inline float dropped() { return -HUGE_VALF; }

// The largest score; NaN if one is NaN.
__device__ inline float largest_of_row(const float* scores, int64_t count) {
  __shared__ float result;
  BestKey key = kNoKey;
  for (int64_t i = threadIdx.x; i < count; i += kFilterThreads) {
    key = better(key, best_key(scores[i], static_cast<uint32_t>(i)));
  }
  key = best_of_block(key);
  if (threadIdx.x == 0) result = key == kNotANumberKey ? __int_as_float(0x7fffffff) : scores[index_of(key)];
  __syncthreads();
  return result;
}

__device__ inline Weight sum_of_filter_block(Weight weight) {
  __shared__ Weight warps[kFilterThreads / 32];
  for (int distance = 16; distance > 0; distance /= 2) weight += __shfl_xor_sync(~0u, weight, distance);
  __syncthreads();
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = weight;
  __syncthreads();
  Weight total = 0;
  for (const Weight part : warps) total += part;
  return total;
}

// The sum of the weights of the threads before this one.
__device__ inline Weight sum_before_thread(Weight weight) {
  __shared__ Weight warps[kFilterThreads / 32];
  const unsigned lane = threadIdx.x % 32;
  Weight sum = weight;
  for (unsigned distance = 1; distance < 32; distance *= 2) {
    const Weight other = __shfl_up_sync(~0u, sum, distance);
    if (lane >= distance) sum += other;
  }
  __syncthreads();
  if (lane == 31) warps[threadIdx.x / 32] = sum;
  __syncthreads();
  Weight before = sum - weight;
  for (unsigned w = 0; w < threadIdx.x / 32; ++w) before += warps[w];
  return before;
}

// A place among the scores, largest first: `before` is what the scores above `key` weigh, and the scores at `key` are
// the first with which `limit` is reached.
struct Cut {
  uint32_t key;
  Weight before;
};

inline constexpr int kBins = 256;
inline constexpr int kCopies = 8;  // of a bin, so that lanes that add to the same one rarely meet

// One digit more of the key: adds up the scores with cut's leading digits by their next one.
template <class WeightOf>
__device__ void refine(Cut& cut, const float* scores, int64_t count, const WeightOf& weight_of, Weight limit,
                       int shift) {
  __shared__ uint32_t low[kBins * kCopies];  // with their overflow in `high`: cards add 32 bits in shared memory
  __shared__ uint32_t high[kBins * kCopies];
  __shared__ Cut found;
  for (int i = static_cast<int>(threadIdx.x); i < kBins * kCopies; i += kFilterThreads) low[i] = high[i] = 0;
  __syncthreads();
  const uint64_t prefix = uint64_t{cut.key} >> (shift + 8);
  for (int64_t i = threadIdx.x; i < count; i += kFilterThreads) {
    const uint32_t key = ordered_bits(scores[i]);
    if (uint64_t{key} >> (shift + 8) != prefix) continue;
    const Weight weight = weight_of(scores[i]);
    const uint32_t bin = (key >> shift & 0xff) * kCopies + threadIdx.x % kCopies;
    const auto part = static_cast<uint32_t>(weight);
    const uint32_t carry = atomicAdd(&low[bin], part) > ~part ? 1 : 0;
    const auto rest = static_cast<uint32_t>(weight >> 32) + carry;
    if (rest != 0) atomicAdd(&high[bin], rest);
  }
  __syncthreads();
  // Digits from the largest on, a thread each; threads beyond have none.
  const uint32_t digit = kBins - 1 - threadIdx.x;
  Weight sum = 0;
  if (threadIdx.x < kBins) {
    for (int c = 0; c < kCopies; ++c) {
      sum += static_cast<Weight>(high[digit * kCopies + c]) << 32 | low[digit * kCopies + c];
    }
  }
  const Weight before = cut.before + sum_before_thread(sum);
  const bool is_last = threadIdx.x == kBins - 1;
  if (threadIdx.x < kBins && before < limit && (before + sum >= limit || is_last)) {
    found = {cut.key | digit << shift, before};
  }
  __syncthreads();
  cut = found;
}

// Keeps what lies above the place at which `limit` is reached, and at it the lower ids as long as less than `limit`
// lies before them. 0 < limit <= the sum of all weights.
template <class WeightOf>
__device__ void keep_leading(float* scores, int64_t count, const WeightOf& weight_of, Weight limit) {
  Cut cut{0, 0};
  for (int shift = 24; shift >= 0; shift -= 8) refine(cut, scores, count, weight_of, limit, shift);
  for (int64_t first = 0; first < count; first += kFilterThreads) {
    const int64_t i = first + threadIdx.x;
    const uint32_t key = i < count ? ordered_bits(scores[i]) : 0;
    const bool is_equal = i < count && key == cut.key;
    if (i < count && key < cut.key) scores[i] = dropped();
    if (!__syncthreads_or(is_equal)) continue;
    const Weight weight = is_equal ? weight_of(scores[i]) : 0;
    const Weight before = cut.before + sum_before_thread(weight);
    cut.before += sum_of_filter_block(weight);
    if (is_equal && before >= limit) scores[i] = dropped();
  }
  __syncthreads();
}

__device__ inline void keep_top_k(float* scores, int64_t count, int32_t top_k) {
  keep_leading(scores, count, UnitWeight{}, static_cast<Weight>(top_k));
}

__device__ inline void keep_top_p(float* scores, int64_t count, float top_p, float max) {
  const ExpWeight weight_of{max};
  Weight weight = 0;
  for (int64_t i = threadIdx.x; i < count; i += kFilterThreads) weight += weight_of(scores[i]);
  const Weight total = sum_of_filter_block(weight);
  // Integers below top_p * total are those below the next integer up.
  const auto limit = static_cast<Weight>(ceil(static_cast<double>(top_p) * static_cast<double>(total)));
  keep_leading(scores, count, weight_of, limit == 0 ? 1 : limit);
}

__device__ inline void keep_min_p(float* scores, int64_t count, float min_p, float max) {
  for (int64_t i = threadIdx.x; i < count; i += kFilterThreads) {
    if (expf(scores[i] - max) < min_p) scores[i] = dropped();
  }
}

}  // namespace blockdraft::cu
