// Merges the partial results that units leave (attention_plan.cuh).
#pragma once

#include <cstdint>

#include "ops/cuda/attention_loader.cuh"
#include "ops/cuda/attention_plan.cuh"
#include "ops/cuda/element.cuh"
#include "ops/cuda/overlap.cuh"
#include "ops/cuda/rows.cuh"

namespace blockdraft::cu {

// The partial results of one query, of its units in order.
template <int kHeadDim>
struct Parts {
  static constexpr int kColumns = kHeadDim / 32;  // of a lane

  const float* first_values;  // the lane's first column
  const float2* first_head;
  int64_t stride;  // floats of a unit

  __device__ Parts(const AttentionCall& call, const AttentionPlan& plan, int first_unit, int query)
      : stride(plan.queries_per_unit * (kHeadDim + 2)) {
    const float* partial = partial_of<kHeadDim>(call, plan, first_unit);
    first_values = partial + query * kHeadDim + static_cast<int>(threadIdx.x) % 32;
    first_head = reinterpret_cast<const float2*>(partial + plan.queries_per_unit * kHeadDim) + query;
  }

  __device__ PartialHead head(int unit) const {
    const float2 head = first_head[unit * (stride / 2)];
    return {head.x, head.y};
  }
  __device__ void values(float (&columns)[kColumns], int unit) const {
    const float* row = first_values + unit * stride;
#pragma unroll
    for (int c = 0; c < kColumns; ++c) columns[c] = row[32 * c];
  }
};

inline constexpr int kMergeThreads = 128;

// Groups that wait to be merged.
inline constexpr int kGroupsAtOnce = 32;
template <int kHeadDim>
struct GroupResults {
  PartialHead heads[kGroupsAtOnce];
  float values[kGroupsAtOnce][kHeadDim];
};

// By one warp: units [first, end) of a group, into `at`. All are loaded before the first is merged.
template <int kHeadDim>
__device__ void merge_units(GroupResults<kHeadDim>& results, int at, const Parts<kHeadDim>& parts, int first, int end) {
  constexpr int kColumns = Parts<kHeadDim>::kColumns;
  PartialHead heads[kChunksPerGroup];
  float values[kChunksPerGroup][kColumns];
#pragma unroll
  for (int i = 0; i < kChunksPerGroup; ++i) {
    if (first + i >= end) continue;
    heads[i] = parts.head(first + i);
    parts.values(values[i], first + i);
  }
  PartialHead group{-HUGE_VALF, 0.0f};
  float group_values[kColumns] = {};
#pragma unroll
  for (int i = 0; i < kChunksPerGroup; ++i) {
    if (first + i >= end) continue;
    const MergeFactors factors = merge_heads(group, heads[i]);
#pragma unroll
    for (int c = 0; c < kColumns; ++c) group_values[c] = merge_values(group_values[c], values[i][c], factors);
  }
  const int lane = static_cast<int>(threadIdx.x) % 32;
  if (lane == 0) results.heads[at] = group;
#pragma unroll
  for (int c = 0; c < kColumns; ++c) results.values[at][lane + 32 * c] = group_values[c];
}

// By one warp: units that are groups each, in turn.
template <int kHeadDim>
__device__ void copy_groups(GroupResults<kHeadDim>& results, const Parts<kHeadDim>& parts, int first, int count) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll 4
  for (int at = static_cast<int>(threadIdx.x) / 32; at < count; at += kMergeThreads / 32) {
    float values[Parts<kHeadDim>::kColumns];
    parts.values(values, first + at);
#pragma unroll
    for (int c = 0; c < Parts<kHeadDim>::kColumns; ++c) results.values[at][lane + 32 * c] = values[c];
    if (lane == 0) results.heads[at] = parts.head(first + at);
  }
}

template <int kHeadDim>
__device__ void put_result(const AttentionCall& call, int32_t row, int head, int column, float value) {
  if (call.rounded != nullptr) {
    store(call.rounded + row * call.rounded_stride + head * kHeadDim + column, value);
  } else {
    call.out[row * call.out_stride + head * kHeadDim + column] = value;
  }
}

// Of a query that one unit has finished. That unit does not round itself: its kernel is short of registers, and this
// one is waited for anyway.
template <int kHeadDim>
__device__ void round_result(const AttentionCall& call, int32_t row, int head) {
  if (call.rounded == nullptr) return;
  const float* from = call.out + row * call.out_stride + head * kHeadDim;
  for (int column = static_cast<int>(threadIdx.x); column < kHeadDim; column += kMergeThreads) {
    put_result<kHeadDim>(call, row, head, column, from[column]);
  }
}

// A block a query of which there are partial results: its warps merge the chunks of groups, then all merge the groups.
template <int kHeadDim>
__global__ void __launch_bounds__(kMergeThreads, kHeadDim > 128 ? 1 : 3)
    merge_kernel(const __grid_constant__ AttentionCall call) {
  __shared__ int units_before[kMaxSequences];
  __shared__ GroupResults<kHeadDim> results;
  let_successor_begin();
  // The batch is there: the kernel that leaves the partial results has waited for it before it let this one begin, or
  // it was there before the pass (AttentionArgs::early).
  const AttentionPlan plan = make_plan<kHeadDim>(call, units_before);
  wait_for_predecessor();
  const auto row = static_cast<int32_t>(blockIdx.x);
  const auto head = static_cast<int>(blockIdx.y);
  if (plan.chunks_per_unit == kWholeSequence) return round_result<kHeadDim>(call, row, head);
  const int sequence = sequence_of_row(call.batch, row);
  if (sequence < 0) return;
  const SequenceRange range = range_of(call.batch, sequence);
  const int units = units_of(call, range, plan.chunks_per_unit);
  if (units == 1) return round_result<kHeadDim>(call, row, head);

  const int tile = (row - range.first_row) / call.rows_per_tile;
  const int row_in_tile = (row - range.first_row) % call.rows_per_tile;
  const Parts<kHeadDim> parts(call, plan,
                              units_before_sequence(units_before, sequence) +
                                  (tile * call.num_kv_heads + head / call.heads_per_kv_head) * units,
                              row_in_tile * call.heads_per_kv_head + head % call.heads_per_kv_head);
  const int first_chunk = range.first_chunk(call.window);
  const int first_group = first_chunk / kChunksPerGroup;
  const int num_groups = (range.end_chunk() + kChunksPerGroup - 1) / kChunksPerGroup - first_group;

  constexpr int kColumns = (kHeadDim + kMergeThreads - 1) / kMergeThreads;  // of a thread
  const auto thread = static_cast<int>(threadIdx.x);
  PartialHead total{-HUGE_VALF, 0.0f};
  float values[kColumns] = {};
  for (int begin = 0; begin < num_groups; begin += kGroupsAtOnce) {
    const int count = min(kGroupsAtOnce, num_groups - begin);
    if (plan.chunks_per_unit == kChunksPerGroup) {
      copy_groups<kHeadDim>(results, parts, begin, count);
    } else {
      for (int at = thread / 32; at < count; at += kMergeThreads / 32) {
        const int chunk = (first_group + begin + at) * kChunksPerGroup;
        merge_units<kHeadDim>(results, at, parts, max(0, chunk - first_chunk),
                              min(units, chunk + kChunksPerGroup - first_chunk));
      }
    }
    __syncthreads();
    for (int at = 0; at < count; ++at) {
      const MergeFactors factors = merge_heads(total, results.heads[at]);
#pragma unroll
      for (int c = 0; c < kColumns; ++c) {
        const int column = thread + c * kMergeThreads;
        if (column < kHeadDim) values[c] = merge_values(values[c], results.values[at][column], factors);
      }
    }
    __syncthreads();
  }
  const float factor = 1.0f / total.sum;
#pragma unroll
  for (int c = 0; c < kColumns; ++c) {
    const int column = thread + c * kMergeThreads;
    if (column < kHeadDim) put_result<kHeadDim>(call, row, head, column, values[c] * factor);
  }
}

}  // namespace blockdraft::cu
