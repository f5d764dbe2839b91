// What a warp does with its queries and a chunk of keys and values in shared memory.
#pragma once

#include <cstdint>

#include "ops/cuda/attention_loader.cuh"
#include "ops/cuda/attention_plan.cuh"
#include "ops/cuda/mma.cuh"

namespace blockdraft::cu {

// Two queries of a lane: what they see, and where they are in q and out.
struct LaneQueries {
  int first_key[2];
  int end_key[2];
  int row[2];  // of the batch; -1: no query
  int head[2];
};

__device__ inline LaneQueries queries_of_lane(const AttentionCall& call, const Unit& unit, int tile) {
  LaneQueries queries{};
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int query = tile * 16 + static_cast<int>(threadIdx.x) % 32 / 4 + 8 * half;
    const int row = query / call.heads_per_kv_head;
    queries.row[half] = -1;
    if (row >= unit.rows) continue;
    const int position = unit.range.first_position + unit.first_row + row;
    queries.row[half] = unit.range.first_row + unit.first_row + row;
    queries.head[half] = unit.kv_head * call.heads_per_kv_head + query % call.heads_per_kv_head;
    queries.first_key[half] = call.window > 0 ? max(0, position - call.window + 1) : 0;
    queries.end_key[half] = call.causal ? position + 1 : unit.range.end;
    if (call.window > 0) queries.end_key[half] = min(queries.end_key[half], position + call.window);
  }
  return queries;
}

// Queries as the first factor of products, BF16.
template <int kHeadDim>
__device__ void load_queries(uint32_t (&fragments)[Tiling<kHeadDim>::kSteps][4], const AttentionCall& call,
                             const LaneQueries& queries) {
  const int column = static_cast<int>(threadIdx.x) % 4 * 2;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const bool is_there = queries.row[half] >= 0;
    const float* q = call.q + queries.row[half] * call.q_stride + queries.head[half] * kHeadDim + column;
#pragma unroll
    for (int step = 0; step < Tiling<kHeadDim>::kSteps; ++step) {
#pragma unroll
      for (int part = 0; part < 2; ++part) {
        float2 pair = {0.0f, 0.0f};
        if (is_there) pair = *reinterpret_cast<const float2*>(q + step * 16 + part * 8);
        fragments[step][2 * part + half] = pack_bf16(pair.x, pair.y);
      }
    }
  }
}

// Scores of the keys of a slot's pages, in tiles of 8 keys, from tile kFirst on.
template <int kHeadDim, int kSlotPages, int kFirst>
__device__ void score_slot(float (&scores)[2 * kPagesPerChunk][4],
                           const uint32_t (&queries)[Tiling<kHeadDim>::kSteps][4], uint32_t slot) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const uint32_t address = slot + offset_in_page<kHeadDim>(lane % 8 + lane / 16 * 8, lane / 8 % 2);
#pragma unroll
  for (int tile = kFirst; tile < kFirst + 2 * kSlotPages; ++tile) {
#pragma unroll
    for (int i = 0; i < 4; ++i) scores[tile][i] = 0.0f;
  }
#pragma unroll
  for (int step = 0; step < Tiling<kHeadDim>::kSteps; ++step) {
#pragma unroll
    for (int page = 0; page < kSlotPages; ++page) {
      uint32_t keys[4];
      load_matrices(keys, (address ^ static_cast<uint32_t>(step << 5)) + page * Tiling<kHeadDim>::kPageBytes);
      multiply_bf16(scores[kFirst + 2 * page], queries[step], keys[0], keys[1]);
      multiply_bf16(scores[kFirst + 2 * page + 1], queries[step], keys[2], keys[3]);
    }
  }
}

// values += weights of the keys of a slot's pages times their values, of the warp's slice.
template <int kHeadDim, int kSlotPages, int kFirst>
__device__ void weigh_slot(float (&values)[Tiling<kHeadDim>::kValues / 8][4],
                           const uint32_t (&weights)[kPagesPerChunk][4], uint32_t slot, int slice) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const uint32_t address =
      slot + offset_in_page<kHeadDim>(lane % 16, slice * (Tiling<kHeadDim>::kValues / 8) + lane / 16);
#pragma unroll
  for (int page = 0; page < kSlotPages; ++page) {
#pragma unroll
    for (int pair = 0; pair < Tiling<kHeadDim>::kValues / 16; ++pair) {
      uint32_t matrices[4];
      load_matrices_transposed(matrices,
                               (address ^ static_cast<uint32_t>(pair << 5)) + page * Tiling<kHeadDim>::kPageBytes);
      multiply_bf16(values[2 * pair], weights[kFirst + page], matrices[0], matrices[1]);
      multiply_bf16(values[2 * pair + 1], weights[kFirst + page], matrices[2], matrices[3]);
    }
  }
}

__device__ inline float max_of_four_lanes(float value) {
  value = fmaxf(value, __shfl_xor_sync(~0u, value, 1));
  return fmaxf(value, __shfl_xor_sync(~0u, value, 2));
}

__device__ inline float sum_of_four_lanes(float value) {
  value += __shfl_xor_sync(~0u, value, 1);
  return value + __shfl_xor_sync(~0u, value, 2);
}

// Scores of keys that a query does not see become -infinity.
__device__ inline void mask_scores(float (&scores)[2 * kPagesPerChunk][4], const LaneQueries& queries, int first_key) {
  const int column = static_cast<int>(threadIdx.x) % 4 * 2;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int first = queries.first_key[half] - first_key - column;
    const int end = queries.end_key[half] - first_key - column;
#pragma unroll
    for (int tile = 0; tile < 2 * kPagesPerChunk; ++tile) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int key = tile * 8 + i;
        if (key < first || key >= end) scores[tile][2 * half + i] = -HUGE_VALF;
      }
    }
  }
}

// Scores of a chunk to weights, rounded to BF16 as the first factor of products, and their largest and sum.
__device__ inline void weigh_scores(PartialHead (&heads)[2], uint32_t (&weights)[kPagesPerChunk][4],
                                    const float (&scores)[2 * kPagesPerChunk][4], float scale_log2) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float largest = -HUGE_VALF;
#pragma unroll
    for (int tile = 0; tile < 2 * kPagesPerChunk; ++tile) {
      largest = fmaxf(largest, fmaxf(scores[tile][2 * half], scores[tile][2 * half + 1]));
    }
    largest = max_of_four_lanes(largest) * scale_log2;
    const float reference = largest == -HUGE_VALF ? 0.0f : largest;
    float sum = 0.0f;
#pragma unroll
    for (int tile = 0; tile < 2 * kPagesPerChunk; ++tile) {
      const float a = exp2_fast(fmaf(scores[tile][2 * half], scale_log2, -reference));
      const float b = exp2_fast(fmaf(scores[tile][2 * half + 1], scale_log2, -reference));
      sum += a + b;
      weights[tile / 2][tile % 2 * 2 + half] = pack_bf16(a, b);
    }
    heads[half] = {largest, sum_of_four_lanes(sum)};
  }
}

// Whether the lanes' queries all see all keys of the chunk.
__device__ inline bool see_all(const LaneQueries& queries, int first_key) {
  bool sees = true;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    sees &= queries.row[half] < 0 ||
            (queries.first_key[half] <= first_key && queries.end_key[half] >= first_key + kAttentionChunk);
  }
  return __all_sync(~0u, sees);
}

template <int kHeadDim>
using Values = float[Tiling<kHeadDim>::kValues / 8][4];

// The chunks of a group as far as they are merged. Values lie in registers, or in shared memory, where only the lane
// itself looks at its own: that leaves registers for a third block of a multiprocessor.
template <int kHeadDim, bool kShared>
struct Group {
  static constexpr int kTiles = Tiling<kHeadDim>::kValues / 8;

  PartialHead heads[2];
  bool is_empty;
  float4* memory;  // of the lane, every 32nd
  float4 registers[kShared ? 1 : kTiles];

  __device__ void clear() {
    is_empty = true;
    heads[0] = heads[1] = {-HUGE_VALF, 0.0f};
  }

  __device__ float4 values(int tile) const {
    if (is_empty) return {0.0f, 0.0f, 0.0f, 0.0f};
    if constexpr (kShared) return memory[32 * tile];
    return registers[tile];
  }

  __device__ void add(const PartialHead (&chunk)[2], const Values<kHeadDim>& chunk_values) {
    const MergeFactors low = merge_heads(heads[0], chunk[0]);
    const MergeFactors high = merge_heads(heads[1], chunk[1]);
#pragma unroll
    for (int t = 0; t < kTiles; ++t) {
      const float4 old = values(t);
      const float4 merged{merge_values(old.x, chunk_values[t][0], low), merge_values(old.y, chunk_values[t][1], low),
                          merge_values(old.z, chunk_values[t][2], high), merge_values(old.w, chunk_values[t][3], high)};
      if constexpr (kShared) {
        memory[32 * t] = merged;
      } else {
        registers[t] = merged;
      }
    }
    is_empty = false;
  }
};

// Two columns of query `half` of a tile of values.
__device__ inline float2 pair_of(const float4& values, int half) {
  return half == 0 ? float2{values.x, values.y} : float2{values.z, values.w};
}

// Values of the lane that follow one another in memory.
template <int kHeadDim>
__device__ float2* lane_columns(float* row, int slice, int tile) {
  return reinterpret_cast<float2*>(row + slice * Tiling<kHeadDim>::kValues + tile * 8 +
                                   static_cast<int>(threadIdx.x) % 4 * 2);
}

// Merges a finished group into the rows of `out`, which hold what came before it; after the last one the rows are done.
template <int kHeadDim, bool kShared>
__device__ void put_group(const AttentionCall& call, const LaneQueries& queries, PartialHead (&totals)[2],
                          const Group<kHeadDim, kShared>& group, int slice, bool is_first, bool is_last) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    if (is_first) totals[half] = {-HUGE_VALF, 0.0f};
    const MergeFactors factors = merge_heads(totals[half], group.heads[half]);
    if (queries.row[half] < 0) continue;
    float* row = call.out + queries.row[half] * call.out_stride + queries.head[half] * kHeadDim;
    const float factor = 1.0f / totals[half].sum;
#pragma unroll
    for (int tile = 0; tile < Group<kHeadDim, kShared>::kTiles; ++tile) {
      float2* out = lane_columns<kHeadDim>(row, slice, tile);
      const float2 next = pair_of(group.values(tile), half);
      float2 pair = {0.0f, 0.0f};
      if (!is_first) pair = *out;
      pair = {merge_values(pair.x, next.x, factors), merge_values(pair.y, next.y, factors)};
      *out = is_last ? float2{pair.x * factor, pair.y * factor} : pair;
    }
  }
}

template <int kHeadDim, bool kShared>
__device__ void put_partial(const AttentionCall& call, const AttentionPlan& plan, const Unit& unit, int tile,
                            const Group<kHeadDim, kShared>& group, int slice) {
  float* partial = partial_of<kHeadDim>(call, plan, unit.index);
  auto* heads = reinterpret_cast<float2*>(partial + plan.queries_per_unit * kHeadDim);
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int query = tile * 16 + lane / 4 + 8 * half;
    if (query >= unit.rows * call.heads_per_kv_head) continue;
    if (lane % 4 == 0 && slice == 0) heads[query] = {group.heads[half].max, group.heads[half].sum};
#pragma unroll
    for (int t = 0; t < Group<kHeadDim, kShared>::kTiles; ++t) {
      *lane_columns<kHeadDim>(partial + query * kHeadDim, slice, t) = pair_of(group.values(t), half);
    }
  }
}

}  // namespace blockdraft::cu
