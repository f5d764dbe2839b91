// Who does what in an attention call. The kernels work it out of the batch in device memory, each block for itself and
// all alike, so that a captured graph can be replayed with other lengths.
#pragma once

#include <cstdint>

#include "ops/attention.h"
#include "ops/cuda/mma.cuh"
#include "tensor/batch_view.h"

namespace blockdraft::cu {

inline constexpr int kAttentionThreads = 128;
inline constexpr int kAttentionWarps = kAttentionThreads / 32;
inline constexpr int kMaxPlanWarps = 8;  // of a block that makes a plan
inline constexpr int kMaxSequences = 1024;
// A group is the part of the keys that one team reduces; its chunks are merged in order, then the groups in order.
inline constexpr int kChunksPerGroup = 8;
inline constexpr int kWholeSequence = INT32_MAX;

struct AttentionCall {
  float* out;
  int64_t out_stride;
  uint16_t* rounded;  // BF16, or null: where results go from `out`, or from partial ones
  int64_t rounded_stride;
  const float* q;
  int64_t q_stride;
  const uint16_t* k;
  const uint16_t* v;
  int32_t num_kv_heads;
  int32_t heads_per_kv_head;
  int32_t rows_per_tile;  // whose queries of one K/V head share what is loaded
  int32_t min_team_warps;
  BatchView batch;
  bool causal;
  int32_t window;
  float scale_log2;  // of scores whose exponentials are powers of 2
  float* partials;
  int64_t partial_floats;
  int32_t num_blocks;  // of the first kernel
  bool early;          // AttentionArgs
};

// A unit is a tile of rows of one sequence with the query heads of one K/V head, and some of its chunks of keys: one
// chunk, a group, or all. Teams of warps take units in turn. A unit that has not all chunks leaves a partial result.
struct AttentionPlan {
  int team_warps;
  int chunks_per_unit;
  int total_units;
  int queries_per_unit;  // room in a partial result
};

struct SequenceRange {
  int32_t first_row;
  int32_t rows;
  int32_t first_position;
  int32_t end;  // one past the last row's position

  __device__ int first_key(int window) const { return window > 0 ? max(0, first_position - window + 1) : 0; }
  __device__ int first_chunk(int window) const { return first_key(window) / kAttentionChunk; }
  __device__ int end_chunk() const { return (end + kAttentionChunk - 1) / kAttentionChunk; }
};

__device__ inline SequenceRange range_of(const BatchView& batch, int sequence) {
  const int first = sequence == 0 ? 0 : batch.first_row[sequence];
  const int rows = batch.first_row[sequence + 1] - first;
  if (rows <= 0) return {first, 0, 0, 0};
  const int position = batch.positions[first];
  return {first, rows, position, position + rows};
}

// Units of one tile and K/V head.
__device__ inline int units_of(const AttentionCall& call, const SequenceRange& range, int chunks_per_unit) {
  if (range.rows == 0) return 0;
  if (chunks_per_unit == kWholeSequence) return 1;
  const int first = range.first_chunk(call.window) / chunks_per_unit;
  return (range.end_chunk() + chunks_per_unit - 1) / chunks_per_unit - first;
}

__device__ inline int tiles_of(const AttentionCall& call, const SequenceRange& range) {
  return (range.rows + call.rows_per_tile - 1) / call.rows_per_tile;
}

// Adds up over the block; the same in every thread.
__device__ inline int sum_of_plan_block(int value) {
  __shared__ int warps[kMaxPlanWarps];
  value = __reduce_add_sync(~0u, value);
  __syncthreads();
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = value;
  __syncthreads();
  int sum = 0;
  for (int w = 0; w < static_cast<int>(blockDim.x) / 32; ++w) sum += warps[w];
  return sum;
}

__device__ inline int max_of_plan_block(int value) {
  __shared__ int warps[kMaxPlanWarps];
  value = __reduce_max_sync(~0u, value);
  __syncthreads();
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = value;
  __syncthreads();
  int most = warps[0];
  for (int w = 1; w < static_cast<int>(blockDim.x) / 32; ++w) most = max(most, warps[w]);
  return most;
}

// What decides how the work is split: units of the whole batch, if they were chunks, groups, and all keys.
struct WorkCounts {
  int most_rows;  // of a tile
  int by_chunk;
  int by_group;
  int whole;

  __device__ void add(const AttentionCall& call, const SequenceRange& range) {
    const int tiles = tiles_of(call, range) * call.num_kv_heads;
    most_rows = max(most_rows, min(range.rows, call.rows_per_tile));
    by_chunk += tiles * units_of(call, range, 1);
    by_group += tiles * units_of(call, range, kChunksPerGroup);
    whole += tiles;
  }
};

template <int kHeadDim>
__device__ AttentionPlan choose_plan(const AttentionCall& call, const WorkCounts& counts) {
  constexpr int kWarpsPerTile = kHeadDim > 128 ? 2 : 1;  // of 16 queries
  AttentionPlan plan{};
  const int query_tiles = (counts.most_rows * call.heads_per_kv_head + 15) / 16;
  plan.team_warps = call.min_team_warps;
  while (plan.team_warps < query_tiles * kWarpsPerTile) plan.team_warps *= 2;
  plan.queries_per_unit = plan.team_warps / kWarpsPerTile * 16;
  const int teams = call.num_blocks * (kAttentionWarps / plan.team_warps);
  const auto room = static_cast<int>(call.partial_floats / (plan.queries_per_unit * (kHeadDim + 2)));
  // Small parts keep all multiprocessors busy, but each begins anew and leaves a partial result: they pay where a team
  // has one at most. Parts of a group are worth it until the whole ones are enough for half of the teams.
  plan.chunks_per_unit = kWholeSequence;
  plan.total_units = counts.whole;
  if (counts.by_chunk <= min(room, teams)) {
    plan.chunks_per_unit = 1;
    plan.total_units = counts.by_chunk;
  } else if (counts.by_group <= room && 2 * counts.whole < teams) {
    plan.chunks_per_unit = kChunksPerGroup;
    plan.total_units = counts.by_group;
  }
  return plan;
}

// units_before[s] = units of the sequences before s. By all threads, whose warps take 32 sequences in turn.
__device__ inline void count_units_before(const AttentionCall& call, int chunks_per_unit, int* units_before) {
  __shared__ int warps[kMaxPlanWarps];
  const auto thread = static_cast<int>(threadIdx.x);
  int total = 0;
  for (int first = 0; first < call.batch.num_sequences; first += static_cast<int>(blockDim.x)) {
    const int s = first + thread;
    int units = 0;
    if (s < call.batch.num_sequences) {
      const SequenceRange range = range_of(call.batch, s);
      units = tiles_of(call, range) * call.num_kv_heads * units_of(call, range, chunks_per_unit);
    }
    int up_to = units;
    for (int distance = 1; distance < 32; distance *= 2) {
      const int other = __shfl_up_sync(~0u, up_to, distance);
      if (thread % 32 >= distance) up_to += other;
    }
    __syncthreads();
    if (thread % 32 == 31) warps[thread / 32] = up_to;
    __syncthreads();
    int before = total + up_to - units;
    for (int w = 0; w < static_cast<int>(blockDim.x) / 32; ++w) {
      if (w < thread / 32) before += warps[w];
      total += warps[w];
    }
    if (s < call.batch.num_sequences) units_before[s] = before;
  }
  __syncthreads();
}

// By all threads of a block. units_before: shared memory for kMaxSequences numbers, unused for a single sequence.
template <int kHeadDim>
__device__ AttentionPlan make_plan(const AttentionCall& call, int* units_before) {
  WorkCounts counts{};
  if (call.batch.num_sequences == 1) {
    counts.add(call, range_of(call.batch, 0));
    return choose_plan<kHeadDim>(call, counts);
  }
  for (int s = static_cast<int>(threadIdx.x); s < call.batch.num_sequences; s += static_cast<int>(blockDim.x)) {
    counts.add(call, range_of(call.batch, s));
  }
  counts.most_rows = max_of_plan_block(counts.most_rows);
  counts.by_chunk = sum_of_plan_block(counts.by_chunk);
  counts.by_group = sum_of_plan_block(counts.by_group);
  counts.whole = sum_of_plan_block(counts.whole);
  const AttentionPlan plan = choose_plan<kHeadDim>(call, counts);
  count_units_before(call, plan.chunks_per_unit, units_before);
  return plan;
}

__device__ inline int units_before_sequence(const int* units_before, int sequence) {
  return sequence == 0 ? 0 : units_before[sequence];
}

// The sequence of a unit.
__device__ inline int sequence_of_unit(const int* units_before, int num_sequences, int unit) {
  int low = 0;
  int high = num_sequences - 1;
  while (low < high) {
    const int middle = (low + high + 1) / 2;
    if (units_before[middle] <= unit) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

// A weighted sum of values, not yet divided by the sum of the weights 2^(score - max). Without any key max is -infinity
// and all else 0.
struct PartialHead {
  float max;
  float sum;
};

// Factors of the values of `into` and `next` in their merged values, and the merged head in `into`.
struct MergeFactors {
  float into;
  float next;
};

__device__ inline MergeFactors merge_heads(PartialHead& into, const PartialHead& next) {
  const float largest = fmaxf(into.max, next.max);
  const float reference = largest == -HUGE_VALF ? 0.0f : largest;
  const MergeFactors factors{exp2_fast(into.max - reference), exp2_fast(next.max - reference)};
  into.max = largest;
  into.sum = fmaf(next.sum, factors.next, into.sum * factors.into);
  return factors;
}

__device__ inline float merge_values(float into, float next, const MergeFactors& factors) {
  return fmaf(next, factors.next, into * factors.into);
}

// Partial results of a unit: values [queries][head_dim], then a head for each query.
template <int kHeadDim>
__device__ float* partial_of(const AttentionCall& call, const AttentionPlan& plan, int unit) {
  return call.partials + static_cast<int64_t>(unit) * plan.queries_per_unit * (kHeadDim + 2);
}

}  // namespace blockdraft::cu
