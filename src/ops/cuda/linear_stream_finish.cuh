// The finishing warps of the stream kernel: add what the math warps of all blocks of the cluster found, in a fixed
// order (linear_split.h), and make the outputs of it. Where there are two, each adds up half of the row tiles, and
// finishes half of the block's tokens.
#pragma once

#include "ops/cuda/best_key.cuh"
#include "ops/cuda/elementwise.cuh"
#include "ops/cuda/linear_stream_layout.cuh"
#include "ops/cuda/ptx.cuh"

namespace blockdraft::cu {

__device__ __forceinline__ float4 operator+(float4 a, float4 b) {
  return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}
__device__ __forceinline__ float4 operator*(float4 a, float4 b) {
  return make_float4(a.x * b.x, a.y * b.y, a.z * b.z, a.w * b.w);
}
__device__ __forceinline__ float4 broadcast4(float value) { return make_float4(value, value, value, value); }

// Up to four neighbours in memory that need not be aligned to 16 bytes.
__device__ __forceinline__ void store_up_to_4(float* to, int count, float4 v) {
  if (count >= 4 && reinterpret_cast<uintptr_t>(to) % 16 == 0) {
    *reinterpret_cast<float4*>(to) = v;
    return;
  }
  if (count > 0) to[0] = v.x;
  if (count > 1) to[1] = v.y;
  if (count > 2) to[2] = v.z;
  if (count > 3) to[3] = v.w;
}
__device__ __forceinline__ void store_up_to_4(__nv_bfloat16* to, int count, float4 v) {
  if (count >= 4 && reinterpret_cast<uintptr_t>(to) % 8 == 0) {
    *reinterpret_cast<uint2*>(to) = make_uint2(pack_bf16(v.x, v.y), pack_bf16(v.z, v.w));
    return;
  }
  if (count > 0) to[0] = __float2bfloat16_rn(v.x);
  if (count > 1) to[1] = __float2bfloat16_rn(v.y);
  if (count > 2) to[2] = __float2bfloat16_rn(v.z);
  if (count > 3) to[3] = __float2bfloat16_rn(v.w);
}

// The four neighbouring features of a tile that a lane finishes, for one token.
struct Features {
  int weight;
  int first;   // of the weight
  int count;   // that exist; at most 4
  int column;  // of out
};

template <class Format, class Shape>
class FinishWarp {
  static constexpr int kRanks = Shape::kRanks;
  static constexpr int kRowTiles = Shape::kRowTiles;
  static constexpr int kParts = 2 / Shape::kFinishWarps;    // of a row tile: eight tokens each
  static_assert(Shape::kOwned == 8 * Shape::kFinishWarps);  // eight tokens a warp, a token for four lanes
  using Ingredients = typename Shape::Ingredients;

 public:
  __device__ __forceinline__ FinishWarp(const StreamParams& p, const SharedAddresses<Shape>& shared, int rank,
                                        int finisher)
      : p_(p),
        shared_(shared),
        rank_(rank),
        finisher_(finisher),
        lane_(static_cast<int>(threadIdx.x) % 32),
        place_(finisher * 8 + lane_ / 4),
        token_(rank * Shape::kOwned + place_) {}

  // An item is finished one item later, so that nobody waits for the other blocks of the cluster.
  __device__ __forceinline__ void run(int cluster, int clusters) {
    ItemWalk ahead(p_, cluster, clusters);
    for (int i = 0; i < kFetchAhead; ++i) fetch(ahead);
    StreamItem before{};
    bool is_first = true;
    for (ItemWalk walk(p_, cluster, clusters); walk.has_item(); walk.advance()) {
      fetch(ahead);
      float4 sums[kRowTiles][kParts];
      add_warps(sums);
      if (!is_first) {
        wait_for_copies_but<kFetchAhead + 1>();
        finish(before);
      }
      send(sums);
      before = walk.item();
      is_first = false;
    }
    wait_for_copies_but<0>();
    if (!is_first) finish(before);
    if (p_.call.output == StreamOutput::keys) store_keys(cluster, clusters);
  }

 private:
  __device__ __forceinline__ bool is_last_section(const StreamItem& item) const {
    return item.section == p_.split.sections - 1;
  }

  __device__ __forceinline__ Features features_of(const StreamItem& item) const {
    const Octet octet = octet_of(p_, item.tile, lane_ % 4 / 2);
    const int first = octet.row + lane_ % 2 * 4;
    int column = first;
    if (p_.call.output != StreamOutput::silu_mul) {
      for (int w = 0; w < octet.weight; ++w) column += static_cast<int>(p_.call.weights[w].out_features);
    }
    return {octet.weight, first, min(4, static_cast<int>(p_.call.weights[octet.weight].out_features) - first), column};
  }

  // Asks for what an item needs beside its sums, some items ahead: memory that is busy with weights answers late. One
  // group of copies for each item, even if there is nothing to copy.
  __device__ __forceinline__ void fetch(ItemWalk& ahead) {
    __syncwarp();  // all lanes are done with what was in this slot
    if (ahead.has_item() && is_last_section(ahead.item())) fetch_item(ahead.item());
    end_copy_group();
    fetched_ = (fetched_ + 1) % kFetchSlots;
    if (ahead.has_item()) ahead.advance();
  }

  __device__ __forceinline__ void fetch_item(const StreamItem& item) const {
    const Features features = features_of(item);
    const WeightView& weight = p_.call.weights[features.weight];
    const uint32_t to = shared_.ingredients(finisher_, fetched_) + lane_ % 4 * 16;
    if (lane_ < 4 && weight.row_scales != nullptr) {
      copy_async_up_to_4(to + offsetof(Ingredients, scale), weight.row_scales + features.first, features.count);
    }
    if (lane_ < 4 && weight.bias != nullptr) {
      copy_async_up_to_4(to + offsetof(Ingredients, bias), weight.bias + features.first, features.count);
    }
    if (p_.call.accumulate && token_ < p_.call.rows) {
      const float* out = static_cast<const float*>(p_.call.out) + token_ * p_.call.out_stride + features.column;
      copy_async_up_to_4(to + offsetof(Ingredients, before) + lane_ / 4 * kTileRows * 4, out, features.count);
    }
  }

  // This block's part of the sums of the next item: four features of eight or sixteen tokens of each row tile.
  __device__ __forceinline__ void add_warps(float4 (&sums)[kRowTiles][kParts]) {
    barrier_wait(shared_.partial_full(in_.slot), in_.parity);
#pragma unroll
    for (int r = 0; r < kRowTiles; ++r) {
#pragma unroll
      for (int part = 0; part < kParts; ++part) {
        const int token = token_of(part);
        const uint32_t place = (token * kTileRows + partial_column(token, lane_ % 4 * 4)) * 4;
        float4 v[kMathWarps];
#pragma unroll
        for (int w = 0; w < kMathWarps; ++w) v[w] = load_shared_f32x4(shared_.partial(in_.slot, w, r) + place);
        if (Shape::kHalves == 2) {
          sums[r][part] = (((v[0] + v[1]) + v[2]) + v[3]) + (((v[4] + v[5]) + v[6]) + v[7]);
        } else {
          sums[r][part] = (((v[0] + v[1]) + (v[2] + v[3])) + (v[4] + v[5])) + (v[6] + v[7]);
        }
      }
    }
    __syncwarp();
    if (lane_ == 0) barrier_arrive(shared_.partial_empty(in_.slot));
    in_.advance(Shape::kBuffers);
  }

  // Of a row tile.
  __device__ __forceinline__ int token_of(int part) const { return (kParts == 2 ? part : finisher_) * 8 + lane_ / 4; }

  // To the blocks that finish the tokens. Slot i is free: whoever sends item i + 2 has received all of item i + 1.
  // Every finishing warp of the cluster has a part in that, and sends it when it is done with item i.
  __device__ __forceinline__ void send(const float4 (&sums)[kRowTiles][kParts]) {
#pragma unroll
    for (int r = 0; r < kRowTiles; ++r) {
#pragma unroll
      for (int part = 0; part < kParts; ++part) {
        const int token = r * 16 + token_of(part);
        const uint32_t owner = token / Shape::kOwned;
        const uint32_t place = shared_.received(sent_, rank_, token % Shape::kOwned, lane_ % 4 * 4);
        store_async(address_in_block(place, owner), sums[r][part],
                    address_in_block(shared_.received_full(sent_), owner));
      }
    }
    sent_ ^= 1;
  }

  __device__ __forceinline__ float4 received_sum() const {
    const auto part = [&](int rank) {
      return load_shared_f32x4(shared_.received(received_.slot, rank, place_, lane_ % 4 * 4));
    };
    if constexpr (kRanks == 2) return part(0) + part(1);
    if constexpr (kRanks == 4) return (part(0) + part(1)) + (part(2) + part(3));
  }

  __device__ __forceinline__ void finish(const StreamItem& item) {
    barrier_wait(shared_.received_full(received_.slot), received_.parity);
    float4 sum = received_sum();
    __syncwarp();
    if (lane_ == 0) barrier_arrive_expecting(shared_.received_full(received_.slot), Shape::kReceivedBytes);
    received_.advance(2);
    if (p_.split.sections > 1) {
      const uint32_t so_far = shared_.section_sum(item.place, place_, lane_ % 4 * 4);
      if (item.section > 0) sum = load_shared_f32x4(so_far) + sum;
      if (!is_last_section(item)) store_shared_f32x4(so_far, sum);
    }
    if (is_last_section(item)) put(item, sum);
    finished_ = (finished_ + 1) % kFetchSlots;
  }

  __device__ __forceinline__ void put(const StreamItem& item, float4 sum) {
    const Features features = features_of(item);
    const WeightView& weight = p_.call.weights[features.weight];
    const uint32_t from = shared_.ingredients(finisher_, finished_) + lane_ % 4 * 16;
    float4 value = sum * broadcast4(Format::kSumScale * weight.global_scale);
    if (weight.row_scales != nullptr) value = value * load_shared_f32x4(from + offsetof(Ingredients, scale));
    if (weight.bias != nullptr) value = value + load_shared_f32x4(from + offsetof(Ingredients, bias));
    switch (p_.call.output) {
      case StreamOutput::sums:
        if (p_.call.accumulate) {
          value = load_shared_f32x4(from + offsetof(Ingredients, before) + lane_ / 4 * kTileRows * 4) + value;
        }
        store(features, value);
        break;
      case StreamOutput::silu_mul: {
        // Lanes of the gate get what those of the up product have, two lanes on.
        const float4 up = make_float4(__shfl_down_sync(~0u, value.x, 2), __shfl_down_sync(~0u, value.y, 2),
                                      __shfl_down_sync(~0u, value.z, 2), __shfl_down_sync(~0u, value.w, 2));
        value = make_float4(silu_mul(value.x, up.x), silu_mul(value.y, up.y), silu_mul(value.z, up.z),
                            silu_mul(value.w, up.w));
        if (features.weight == 0) store(features, value);
        break;
      }
      case StreamOutput::keys:
        keep_best(features, value);
    }
  }

  __device__ __forceinline__ void store(const Features& features, float4 value) const {
    if (token_ >= p_.call.rows) return;
    const int64_t element = token_ * p_.call.out_stride + features.column;
    if (p_.call.out_is_bf16) {
      store_up_to_4(static_cast<__nv_bfloat16*>(p_.call.out) + element, features.count, value);
    } else {
      store_up_to_4(static_cast<float*>(p_.call.out) + element, features.count, value);
    }
  }

  __device__ __forceinline__ void keep_best(const Features& features, float4 value) {
    const float values[4] = {value.x, value.y, value.z, value.w};
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const float score = scale_softcap(values[j], p_.call.multiplier, p_.call.softcap);
      if (j < features.count) best_ = better(best_, best_key(score, static_cast<uint32_t>(features.first + j)));
    }
  }

  // Parts that no cluster has get keys, too: whoever merges them takes all.
  __device__ __forceinline__ void store_keys(int cluster, int clusters) const {
    BestKey best = better(best_, __shfl_xor_sync(~0u, best_, 1));
    best = better(best, __shfl_xor_sync(~0u, best, 2));
    if (lane_ % 4 != 0 || token_ >= p_.call.rows) return;
    BestKey* parts = p_.call.keys + int64_t{token_} * kBestParts;
    for (int part = cluster; part < kBestParts; part += clusters) parts[part] = part == cluster ? best : kNoKey;
  }

  const StreamParams& p_;
  const SharedAddresses<Shape> shared_;
  const int rank_;
  const int finisher_;
  const int lane_;
  const int place_;  // of the lane's token among the block's
  const int token_;
  RingPosition in_;
  RingPosition received_;
  int sent_ = 0;
  int fetched_ = 0;  // slots of ingredients
  int finished_ = 0;
  BestKey best_ = kNoKey;
};

}  // namespace blockdraft::cu
