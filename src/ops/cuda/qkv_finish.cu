#include "ops/cuda/four.cuh"
#include "ops/cuda/kv_place.cuh"
#include "ops/cuda/launch.h"
#include "ops/cuda/overlap.cuh"
#include "ops/cuda/rows.cuh"
#include "ops/qkv_finish.h"
#include "tensor/codec.h"

// A warp a head of a row: first the query heads, then those of K, each with its values. Heads of usual sizes lie in
// registers, and all that they need is asked for at once; others go through memory. Sums run as in cu::rms_norm().

namespace blockdraft::cu {

namespace {

constexpr int kWarps = 4;  // of a block

struct Finish {
  float* q;
  int64_t q_stride;
  const float* k;
  int64_t k_stride;
  const float* v;
  int64_t v_stride;
  const float* q_norm;  // null: none
  const float* k_norm;
  float eps;
  const float* rope;
  int64_t rope_stride;
  PagedKvView kv;
  BatchView batch;
  int32_t num_heads;
};

__device__ int lane() { return static_cast<int>(threadIdx.x) % 32; }

// Where a lane's four columns of 128 begin.
__device__ int column_of(int vector) { return 4 * lane() + 128 * vector; }

// Floats as they lie in pages.
__device__ void store_bf16(uint16_t* to, float4 v) {
  const auto pair = [](float low, float high) {
    return static_cast<uint32_t>(bf16_from_float(low)) | static_cast<uint32_t>(bf16_from_float(high)) << 16;
  };
  *reinterpret_cast<uint2*>(to) = {pair(v.x, v.y), pair(v.z, v.w)};
}

__device__ bool is_finite_as_bf16(float value) { return is_finite_bf16(bf16_from_float(value)); }

// kDim columns of a row in the registers of a warp; what a lane has beyond them is zero.
template <int kDim>
struct WarpColumns {
  static constexpr int kVectors = (kDim + 127) / 128;
  float4 of[kVectors];

  static __device__ bool exists(int vector) { return kDim % 128 == 0 || column_of(vector) < kDim; }

  __device__ void load(const float* from) {
#pragma unroll
    for (int i = 0; i < kVectors; ++i) {
      of[i] = {0.0f, 0.0f, 0.0f, 0.0f};
      if (exists(i)) of[i] = *reinterpret_cast<const float4*>(from + column_of(i));
    }
  }
  __device__ void store(float* to) const {
#pragma unroll
    for (int i = 0; i < kVectors; ++i) {
      if (exists(i)) *reinterpret_cast<float4*>(to + column_of(i)) = of[i];
    }
  }
  __device__ void store(uint16_t* to) const {
#pragma unroll
    for (int i = 0; i < kVectors; ++i) {
      if (exists(i)) store_bf16(to + column_of(i), of[i]);
    }
  }
  __device__ void fill(float value) {
#pragma unroll
    for (int i = 0; i < kVectors; ++i) of[i] = {value, value, value, value};
  }
  __device__ bool are_finite() const {
    bool result = true;
#pragma unroll
    for (int i = 0; i < kVectors; ++i) {
      result &= is_finite_as_bf16(of[i].x) && is_finite_as_bf16(of[i].y) && is_finite_as_bf16(of[i].z) &&
                is_finite_as_bf16(of[i].w);
    }
    return __all_sync(~0u, result);
  }
  __device__ void normalize(const WarpColumns& weight, float eps) {
    float squares = 0.0f;
#pragma unroll
    for (int i = 0; i < kVectors; ++i) squares = add_squares(squares, of[i]);
    const float factor = norm_factor(sum_of_warp(squares), kDim, eps);
#pragma unroll
    for (int i = 0; i < kVectors; ++i) of[i] = normed(of[i], factor, weight.of[i]);
  }
};

// A row of the rope table as the columns of a head need it.
template <int kDim>
struct Rotation {
  static constexpr int kHalf = kDim / 2;
  static_assert(kHalf == 32 || kHalf == 64 || kHalf == 128);
  float4 cosines;
  float4 sines;

  __device__ void load(const float* table) {
    const float* from = table + 4 * lane() % kHalf;
    cosines = *reinterpret_cast<const float4*>(from);
    sines = *reinterpret_cast<const float4*>(from + kHalf);
  }

  // The other half of a head's four columns: in another lane, or the lane's other vector.
  static __device__ float4 partner(const WarpColumns<kDim>& x, int vector) {
    if constexpr (kHalf == 128) return x.of[1 - vector];
    const float4 v = x.of[vector];
    constexpr int kLanes = kHalf / 4;
    return {__shfl_xor_sync(~0u, v.x, kLanes), __shfl_xor_sync(~0u, v.y, kLanes), __shfl_xor_sync(~0u, v.z, kLanes),
            __shfl_xor_sync(~0u, v.w, kLanes)};
  }

  static __device__ float rotated(float own, float other, float cosine, float sine, bool is_low) {
    return is_low ? own * cosine - other * sine : own * cosine + other * sine;
  }

  __device__ void apply(WarpColumns<kDim>& x) const {
    WarpColumns<kDim> result;
#pragma unroll
    for (int i = 0; i < WarpColumns<kDim>::kVectors; ++i) {
      const float4 own = x.of[i];
      const float4 other = partner(x, i);
      const bool is_low = column_of(i) < kHalf;
      result.of[i] = {
          rotated(own.x, other.x, cosines.x, sines.x, is_low), rotated(own.y, other.y, cosines.y, sines.y, is_low),
          rotated(own.z, other.z, cosines.z, sines.z, is_low), rotated(own.w, other.w, cosines.w, sines.w, is_low)};
    }
    x = result;
  }
};

// In this order: attention goes by what was there before this kernel without waiting for it (AttentionArgs::early).
__device__ void begin_behind_predecessor() {
  wait_for_predecessor();
  let_successor_begin();
}

// The weights of a norm do not depend on the kernels before; all else does.
template <int kDim>
__device__ void finish_in_registers(const Finish& args, int head, int row) {
  const bool is_query = head < args.num_heads;
  const int kv_head = head - args.num_heads;
  const float* norm = is_query ? args.q_norm : args.k_norm;
  WarpColumns<kDim> weight;
  if (norm != nullptr) weight.load(norm);
  begin_behind_predecessor();
  if (kv_head >= args.kv.num_kv_heads) return;

  WarpColumns<kDim> x;
  WarpColumns<kDim> values;
  Rotation<kDim> rotation;
  x.load(is_query ? args.q + row * args.q_stride + head * kDim : args.k + row * args.k_stride + kv_head * kDim);
  rotation.load(args.rope + row * args.rope_stride);
  if (!is_query) values.load(args.v + row * args.v_stride + kv_head * kDim);
  const int32_t sequence = is_query ? -1 : sequence_of_row_by_warp(args.batch, row);

  if (norm != nullptr) x.normalize(weight, args.eps);
  rotation.apply(x);
  if (is_query) return x.store(args.q + row * args.q_stride + head * kDim);
  if (sequence < 0) return;
  const KvPlace place = place_of_row(args.kv, args.batch, sequence, row);
  const int64_t at = args.kv.offset(place.page, kv_head, place.slot);
  if (!values.are_finite()) {
    x.fill(float_from_bf16(kBrokenKey));
    values.fill(0.0f);
  }
  x.store(static_cast<uint16_t*>(args.kv.k) + at);
  values.store(static_cast<uint16_t*>(args.kv.v) + at);
}

// Calls put(i, value) for the columns of a head; each lane with those that it reads itself.
template <class Put>
__device__ void norm_and_rotate(const float* x, const float* norm, float eps, const float* table, int dim,
                                const Put& put) {
  float factor = 1.0f;
  if (norm != nullptr) {
    float squares = 0.0f;
    for (int i = 4 * lane(); i < dim; i += 128) squares = add_squares(squares, load4<false>(x + i, dim - i));
    factor = norm_factor(sum_of_warp(squares), dim, eps);
  }
  __syncwarp();  // all have read what some write now
  const int half = dim / 2;
  for (int i = lane(); i < half; i += 32) {
    const float low = norm == nullptr ? x[i] : x[i] * factor * norm[i];
    const float high = norm == nullptr ? x[i + half] : x[i + half] * factor * norm[i + half];
    put(i, low * table[i] - high * table[half + i]);
    put(i + half, high * table[i] + low * table[half + i]);
  }
}

__device__ void finish_in_memory(const Finish& args, int head, int row) {
  begin_behind_predecessor();
  const int dim = args.kv.head_dim;
  const int kv_head = head - args.num_heads;
  if (kv_head >= args.kv.num_kv_heads) return;
  const float* table = args.rope + row * args.rope_stride;
  if (kv_head < 0) {
    float* q = args.q + row * args.q_stride + head * dim;
    return norm_and_rotate(q, args.q_norm, args.eps, table, dim, [&](int i, float value) { q[i] = value; });
  }
  const int32_t sequence = sequence_of_row_by_warp(args.batch, row);
  if (sequence < 0) return;
  const KvPlace place = place_of_row(args.kv, args.batch, sequence, row);
  const int64_t at = args.kv.offset(place.page, kv_head, place.slot);
  auto* keys = static_cast<uint16_t*>(args.kv.k) + at;
  auto* values = static_cast<uint16_t*>(args.kv.v) + at;
  const float* v = args.v + row * args.v_stride + kv_head * dim;
  bool are_finite = true;
  for (int i = lane(); i < dim; i += 32) are_finite &= is_finite_as_bf16(v[i]);
  are_finite = __all_sync(~0u, are_finite);
  for (int i = lane(); i < dim; i += 32) values[i] = are_finite ? bf16_from_float(v[i]) : uint16_t{0};
  norm_and_rotate(args.k + row * args.k_stride + kv_head * dim, args.k_norm, args.eps, table, dim,
                  [&](int i, float value) { keys[i] = are_finite ? bf16_from_float(value) : kBrokenKey; });
}

// kDim 0: any.
template <int kDim>
__global__ void __launch_bounds__(kWarps * 32) qkv_finish_kernel(const __grid_constant__ Finish args) {
  const int head = static_cast<int>(blockIdx.x) * kWarps + static_cast<int>(threadIdx.x) / 32;
  const auto row = static_cast<int>(blockIdx.y);
  if constexpr (kDim == 0) {
    finish_in_memory(args, head, row);
  } else {
    finish_in_registers<kDim>(args, head, row);
  }
}

// Whether every head of the call can be read as vectors; the result is the same if not.
bool is_vector(const QkvFinishArgs& args) {
  for (const ConstTensorView& view : {ConstTensorView(args.q), ConstTensorView(args.k), args.v, args.rope}) {
    if (!is_in_fours(view)) return false;
  }
  const auto is_pool = [](const void* pool) { return reinterpret_cast<uintptr_t>(pool) % 8 == 0; };
  return is_in_fours(args.q_norm) && is_in_fours(args.k_norm) && is_pool(args.kv.k) && is_pool(args.kv.v);
}

template <int kDim>
void run(Context& context, const Finish& args, int32_t rows) {
  const int32_t heads = args.num_heads + args.kv.num_kv_heads;
  launch(context, "qkv_finish", in_chain({blocks_for(heads, kWarps), static_cast<unsigned>(rows)}, kWarps * 32),
         qkv_finish_kernel<kDim>, args);
}

}  // namespace

void qkv_finish(Context& context, const QkvFinishArgs& args) {
  CHECK(args.kv.dtype == DType::bf16);
  const Finish finish{.q = args.q.f32(),
                      .q_stride = args.q.row_stride,
                      .k = args.k.f32(),
                      .k_stride = args.k.row_stride,
                      .v = args.v.f32(),
                      .v_stride = args.v.row_stride,
                      .q_norm = args.q_norm.f32(),
                      .k_norm = args.k_norm.f32(),
                      .eps = args.eps,
                      .rope = args.rope.f32(),
                      .rope_stride = args.rope.row_stride,
                      .kv = args.kv,
                      .batch = args.batch,
                      .num_heads = static_cast<int32_t>(args.q.dim(1) / args.kv.head_dim)};
  const int32_t head_dim = is_vector(args) ? args.kv.head_dim : 0;
  switch (head_dim) {
    case 64:
      return run<64>(context, finish, args.batch.num_rows);
    case 128:
      return run<128>(context, finish, args.batch.num_rows);
    case 256:
      return run<256>(context, finish, args.batch.num_rows);
    default:
      return run<0>(context, finish, args.batch.num_rows);
  }
}

}  // namespace blockdraft::cu
