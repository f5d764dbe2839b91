#include "ops/cuda/four.cuh"
#include "ops/cuda/launch.h"
#include "ops/cuda/overlap.cuh"
#include "ops/cuda/rows.cuh"
#include "ops/rms_norm.h"

// A group of up to kWarpColumns columns is the work of a warp, a longer one of a block. A thread takes four neighbours
// at a time, in sequence. Whether it may load them as one vector, and whether it keeps them in registers, changes no
// sum.

namespace blockdraft::cu {

namespace {

constexpr int64_t kWarpColumns = 512;
constexpr int kWarps = 4;                         // groups of a block, a warp each
constexpr int kBlockThreads = 512;                // on one group
constexpr int kBlockColumns = 4 * kBlockThreads;  // that they take at a time

template <class Out>
struct Norm {
  Out* out;
  int64_t out_stride;
  const float* x;
  int64_t x_stride;
  const float* weight;
  float eps;
  int64_t rows;
  int64_t dim;
  int64_t groups;  // of a row
};

template <bool kVector>
__device__ float squares_of_thread(const float* x, int64_t dim, int thread, int threads) {
  float sum = 0.0f;
  for (int64_t i = 4 * thread; i < dim; i += 4 * threads) {
    sum = add_squares(sum, load4<kVector>(x + i, dim - i));
  }
  return sum;
}

template <bool kVector, class Out>
__device__ void scale_by_thread(const Norm<Out>& norm, Out* out, const float* x, float squares, int thread,
                                int threads) {
  const float factor = norm_factor(squares, norm.dim, norm.eps);
  for (int64_t i = 4 * thread; i < norm.dim; i += 4 * threads) {
    const int64_t left = norm.dim - i;
    const float4 v = load4<kVector>(x + i, left);
    store4<kVector>(out + i, normed(v, factor, load4<kVector>(norm.weight + i, left)), left);
  }
}

template <bool kVector, class Out>
__global__ void warp_norm_kernel(Norm<Out> norm) {
  begin_in_chain();
  const int64_t group = int64_t{blockIdx.x} * kWarps + threadIdx.x / 32;
  if (group >= norm.rows * norm.groups) return;
  const int64_t row = group / norm.groups;
  const int64_t column = group % norm.groups * norm.dim;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const float* x = norm.x + row * norm.x_stride + column;
  const float squares = sum_of_warp(squares_of_thread<kVector>(x, norm.dim, lane, 32));
  scale_by_thread<kVector>(norm, norm.out + row * norm.out_stride + column, x, squares, lane, 32);
}

// A pass waits for this kernel between two products: all loads are under way before the first is needed, those of the
// weight before the kernels ahead are done, and the block meets once.
template <int kVectors, class Out>
__global__ void __launch_bounds__(kBlockThreads) register_norm_kernel(const __grid_constant__ Norm<Out> norm) {
  let_successor_begin();
  const int64_t row = blockIdx.x;
  const int64_t column = blockIdx.y * norm.dim;
  const int first = 4 * static_cast<int>(threadIdx.x);
  const auto dim = static_cast<int>(norm.dim);
  float4 x[kVectors] = {};
  float4 weight[kVectors] = {};
#pragma unroll
  for (int j = 0; j < kVectors; ++j) {
    const int i = first + j * kBlockColumns;
    if (i < dim) weight[j] = load4<true>(norm.weight + i, 4);
  }
  wait_for_predecessor();
#pragma unroll
  for (int j = 0; j < kVectors; ++j) {
    const int i = first + j * kBlockColumns;
    if (i < dim) x[j] = load4<true>(norm.x + row * norm.x_stride + column + i, 4);
  }
  float squares = 0.0f;
#pragma unroll
  for (int j = 0; j < kVectors; ++j) squares = add_squares(squares, x[j]);
  const float factor = norm_factor(sum_of_block(squares), dim, norm.eps);
#pragma unroll
  for (int j = 0; j < kVectors; ++j) {
    const int i = first + j * kBlockColumns;
    if (i < dim) store4<true>(norm.out + row * norm.out_stride + column + i, normed(x[j], factor, weight[j]), 4);
  }
}

template <bool kVector, class Out>
__global__ void block_norm_kernel(Norm<Out> norm) {
  begin_in_chain();
  const int64_t row = blockIdx.x;
  const int64_t column = blockIdx.y * norm.dim;
  const int thread = static_cast<int>(threadIdx.x);
  const float* x = norm.x + row * norm.x_stride + column;
  const float squares = sum_of_block(squares_of_thread<kVector>(x, norm.dim, thread, kBlockThreads));
  scale_by_thread<kVector>(norm, norm.out + row * norm.out_stride + column, x, squares, thread, kBlockThreads);
}

// Of groups of more than kWarpColumns.
template <bool kVector, class Out>
auto block_kernel(int64_t dim) {
  if (kVector && dim <= kBlockColumns) return register_norm_kernel<1, Out>;
  if (kVector && dim <= 2 * kBlockColumns) return register_norm_kernel<2, Out>;
  if (kVector && dim <= 4 * kBlockColumns) return register_norm_kernel<4, Out>;
  return block_norm_kernel<kVector, Out>;
}

template <bool kVector, class Out>
void run(Context& context, const TensorView& out, const ConstTensorView& x, const ConstTensorView& weight, float eps) {
  const int64_t dim = weight.dim(0);
  const int64_t groups = x.dim(1) / dim;
  const Norm<Out> norm{
      static_cast<Out*>(out.data), out.row_stride, x.f32(), x.row_stride, weight.f32(), eps, x.dim(0), dim, groups};
  if (dim <= kWarpColumns) {
    launch(context, "rms_norm", in_chain(blocks_for(x.dim(0) * groups, kWarps), kWarps * 32),
           warp_norm_kernel<kVector, Out>, norm);
  } else {
    launch(context, "rms_norm",
           in_chain({static_cast<unsigned>(x.dim(0)), static_cast<unsigned>(groups)}, kBlockThreads),
           block_kernel<kVector, Out>(dim), norm);
  }
}

}  // namespace

void rms_norm(Context& context, TensorView out, ConstTensorView x, ConstTensorView weight, float eps) {
  const bool is_vector = weight.dim(0) % 4 == 0 && is_in_fours(out) && is_in_fours(x) && is_in_fours(weight);
  if (out.dtype == DType::bf16) {
    return is_vector ? run<true, uint16_t>(context, out, x, weight, eps)
                     : run<false, uint16_t>(context, out, x, weight, eps);
  }
  return is_vector ? run<true, float>(context, out, x, weight, eps) : run<false, float>(context, out, x, weight, eps);
}

}  // namespace blockdraft::cu
