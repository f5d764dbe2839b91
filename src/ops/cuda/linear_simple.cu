#include "ops/cuda/best_key.cuh"
#include "ops/cuda/decode.cuh"
#include "ops/cuda/element.cuh"
#include "ops/cuda/elementwise.cuh"
#include "ops/cuda/launch.h"
#include "ops/cuda/linear_simple.h"
#include "ops/cuda/overlap.cuh"

namespace blockdraft::cu {

namespace {

constexpr int kWarps = 8;     // features of a block at a time
constexpr int kRowTile = 16;  // rows that share a decoded element

// sums[i] = sum_k x[first_row + i, k] * W[n, k] in every lane: lane j takes k = j, j + 32, ... in sequence, then the
// lanes are added in a tree. Rows beyond the last are zero.
template <class X>
__device__ void dot_rows(float (&sums)[kRowTile], const WeightView& weight, int64_t n, const X* x, int64_t stride,
                         int64_t first_row, int64_t rows) {
  for (float& sum : sums) sum = 0.0f;
  for (int64_t k = threadIdx.x % 32; k < weight.in_features; k += 32) {
    const float element = element_before_row_scale(weight, n, k);
#pragma unroll
    for (int i = 0; i < kRowTile; ++i) {
      if (first_row + i < rows) sums[i] = fmaf(as_float(x[(first_row + i) * stride + k]), element, sums[i]);
    }
  }
  const float scale = row_scale(weight, n);
  const float bias = weight.bias == nullptr ? 0.0f : weight.bias[n];
  for (float& sum : sums) {
    for (int distance = 16; distance > 0; distance /= 2) sum += __shfl_xor_sync(~0u, sum, distance);
    sum = sum * scale + bias;
  }
}

__device__ int64_t feature_of_warp() { return int64_t{blockIdx.x} * kWarps + threadIdx.x / 32; }

template <class X>
__global__ void linear_kernel(WeightView weight, float* out, int64_t out_stride, const X* x, int64_t x_stride,
                              int64_t rows, bool accumulate) {
  begin_in_chain();
  const int64_t n = feature_of_warp();
  if (n >= weight.out_features) return;
  for (int64_t first = 0; first < rows; first += kRowTile) {
    float sums[kRowTile];
    dot_rows(sums, weight, n, x, x_stride, first, rows);
    if (threadIdx.x % 32 != 0) continue;
#pragma unroll
    for (int i = 0; i < kRowTile; ++i) {
      if (first + i >= rows) continue;
      float& value = out[(first + i) * out_stride + n];
      value = accumulate ? value + sums[i] : sums[i];
    }
  }
}

template <class Out, class X>
__global__ void linear_silu_mul_kernel(WeightView gate, WeightView up, Out* out, int64_t out_stride, const X* x,
                                       int64_t x_stride, int64_t rows) {
  begin_in_chain();
  const int64_t n = feature_of_warp();
  if (n >= gate.out_features) return;
  for (int64_t first = 0; first < rows; first += kRowTile) {
    float gates[kRowTile];
    float ups[kRowTile];
    dot_rows(gates, gate, n, x, x_stride, first, rows);
    dot_rows(ups, up, n, x, x_stride, first, rows);
    if (threadIdx.x % 32 != 0) continue;
#pragma unroll
    for (int i = 0; i < kRowTile; ++i) {
      if (first + i < rows) store(out + (first + i) * out_stride + n, silu_mul(gates[i], ups[i]));
    }
  }
}

// parts[r * gridDim.x + block] = the best of the features that the block has gone through.
template <class X>
__global__ void best_feature_kernel(WeightView weight, BestKey* parts, const X* x, int64_t x_stride, int64_t rows,
                                    int64_t num_choices, float multiplier, float softcap) {
  begin_in_chain();
  __shared__ BestKey keys[kWarps][kRowTile];
  const int warp = static_cast<int>(threadIdx.x) / 32;
  for (int64_t first = 0; first < rows; first += kRowTile) {
    BestKey best[kRowTile];
    for (BestKey& key : best) key = kNoKey;
    for (int64_t n = feature_of_warp(); n < num_choices; n += int64_t{gridDim.x} * kWarps) {
      float sums[kRowTile];
      dot_rows(sums, weight, n, x, x_stride, first, rows);
#pragma unroll
      for (int i = 0; i < kRowTile; ++i) {
        const float value = scale_softcap(sums[i], multiplier, softcap);
        best[i] = better(best[i], best_key(value, static_cast<uint32_t>(n)));
      }
    }
    if (threadIdx.x % 32 == 0) {
      for (int i = 0; i < kRowTile; ++i) keys[warp][i] = best[i];
    }
    __syncthreads();
    if (threadIdx.x < kRowTile && first + threadIdx.x < rows) {
      BestKey key = kNoKey;
      for (int w = 0; w < kWarps; ++w) key = better(key, keys[w][threadIdx.x]);
      parts[(first + threadIdx.x) * gridDim.x + blockIdx.x] = key;
    }
    __syncthreads();
  }
}

// launch(data) with the elements' own type, float or BF16.
template <class Launch>
void with_elements(const ConstTensorView& view, const Launch& launch) {
  if (view.dtype == DType::bf16) return launch(static_cast<const uint16_t*>(view.data));
  launch(view.f32());
}
template <class Launch>
void with_elements(const TensorView& view, const Launch& launch) {
  if (view.dtype == DType::bf16) return launch(static_cast<uint16_t*>(view.data));
  launch(view.f32());
}

LaunchShape shape_for(const WeightView& weight) {
  return in_chain(blocks_for(weight.out_features, kWarps), kWarps * 32);
}

}  // namespace

void linear_simple(Context& context, const LinearArgs& args) {
  int64_t column = 0;
  for (const WeightView& weight : args.weights) {
    with_elements(args.x, [&]<class X>(const X* x) {
      launch(context, "linear", shape_for(weight), linear_kernel<X>, weight, args.out.f32() + column,
             args.out.row_stride, x, args.x.row_stride, args.x.dim(0), args.accumulate);
    });
    column += weight.out_features;
  }
}

void linear_silu_mul_simple(Context& context, const LinearSiluMulArgs& args) {
  with_elements(args.x, [&]<class X>(const X* x) {
    with_elements(args.out, [&]<class Out>(Out* out) {
      launch(context, "linear_silu_mul", shape_for(args.gate), linear_silu_mul_kernel<Out, X>, args.gate, args.up, out,
             args.out.row_stride, x, args.x.row_stride, args.x.dim(0));
    });
  });
}

void best_features_simple(Context& context, BestKey* keys, const LinearArgmaxArgs& args) {
  with_elements(args.x, [&]<class X>(const X* x) {
    launch(context, "linear_argmax", in_chain(kBestParts, kWarps * 32), best_feature_kernel<X>, args.weight, keys, x,
           args.x.row_stride, args.x.dim(0), args.num_choices, args.multiplier, args.softcap);
  });
}

}  // namespace blockdraft::cu
