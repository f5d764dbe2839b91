#include <algorithm>

#include "ops/cuda/decode.cuh"
#include "ops/cuda/element.cuh"
#include "ops/cuda/elementwise.cuh"
#include "ops/cuda/launch.h"
#include "ops/cuda/linear_prompt.h"
#include "ops/cuda/overlap.cuh"
#include "tensor/cublas_lt.h"

namespace blockdraft::cu {

namespace {

constexpr int kThreads = 256;
constexpr int kDecodeThreads = 128;
constexpr int kCodes = 8;  // of neighbours in a row, which a thread decodes together

// A thread an element: column and row of it.
__device__ int64_t column() { return int64_t{blockIdx.x} * kThreads + threadIdx.x; }
__device__ int64_t row() { return blockIdx.y; }

LaunchShape elements(int64_t rows, int64_t columns) {
  return in_chain({blocks_for(columns, kThreads), static_cast<unsigned>(rows)}, kThreads);
}

__global__ void round_kernel(uint16_t* out, const float* x, int64_t x_stride, int64_t columns) {
  begin_in_chain();
  if (column() < columns) store(out + row() * columns + column(), x[row() * x_stride + column()]);
}

// Shifted into a float's fields, an E2M1 code is too small by 2^126, subnormal ones included.
__device__ float e2m1(uint32_t code) { return bits_as<float>((code & 8) << 28 | (code & 7) << 22) * 0x1p126f; }

__device__ void decode_fp4(float (&values)[kCodes], const WeightView& weight, int64_t n, int64_t k) {
  const int64_t first = n * weight.in_features + k;
  const auto codes = *reinterpret_cast<const uint32_t*>(weight.data + first / 2);
  const float scale = float_from_f8_e4m3(static_cast<uint8_t>(weight.group_scales[first / kScaleGroup]));
#pragma unroll
  for (int i = 0; i < kCodes; ++i) values[i] = e2m1(codes >> (4 * i)) * scale;
}

__device__ void decode_f8(float (&values)[kCodes], const WeightView& weight, int64_t n, int64_t k) {
  const uint2 codes = *reinterpret_cast<const uint2*>(weight.data + n * weight.in_features + k);
  const int64_t blocks = (weight.in_features + kScaleBlock - 1) / kScaleBlock;
  const float scale =
      weight.block_scales == nullptr ? 1.0f : weight.block_scales[n / kScaleBlock * blocks + k / kScaleBlock];
#pragma unroll
  for (int i = 0; i < kCodes; ++i) {
    values[i] = float_from_f8_e4m3(static_cast<uint8_t>((i < 4 ? codes.x : codes.y) >> (8 * (i % 4)))) * scale;
  }
}

// A block a feature, from `first` on: without row scales and global scale.
__global__ void decode_kernel(uint16_t* out, WeightView weight, int64_t first) {
  begin_in_chain();
  const int64_t feature = blockIdx.x;
  for (int64_t k = kCodes * threadIdx.x; k < weight.in_features; k += kCodes * kDecodeThreads) {
    float v[kCodes];
    if (weight.dtype == DType::u8) {
      decode_fp4(v, weight, first + feature, k);
    } else {
      decode_f8(v, weight, first + feature, k);
    }
    *reinterpret_cast<uint4*>(out + feature * weight.in_features + k) =
        make_uint4(pack_bf16(v[0], v[1]), pack_bf16(v[2], v[3]), pack_bf16(v[4], v[5]), pack_bf16(v[6], v[7]));
  }
}

__global__ void finish_kernel(float* out, int64_t out_stride, const float* sums, int64_t sums_stride, WeightView weight,
                              bool accumulate) {
  begin_in_chain();
  const int64_t n = column();
  if (n >= weight.out_features) return;
  float value = sums[row() * sums_stride + n] * row_scale(weight, n);
  if (weight.bias != nullptr) value += weight.bias[n];
  float& place = out[row() * out_stride + n];
  place = accumulate ? place + value : value;
}

template <class Out>
__global__ void silu_mul_kernel(Out* out, int64_t out_stride, const float* products, int64_t inner) {
  begin_in_chain();
  const int64_t i = column();
  if (i >= inner) return;
  const float* gate = products + row() * 2 * inner + i;
  store(out + row() * out_stride + i, silu_mul(gate[0], gate[inner]));
}

bool is_aligned(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer) % CublasLt::kAlignment == 0; }

// Whether the library can write there.
bool is_aligned(const TensorView& out) {
  return is_aligned(out.data) && out.row_stride % (CublasLt::kAlignment / sizeof(float)) == 0;
}

// x as it is, or from the arena.
ConstTensorView in_bf16(Context& context, const ConstTensorView& x) {
  if (x.dtype == DType::bf16) {
    CHECK(is_aligned(x.data) && x.row_stride % (CublasLt::kAlignment / sizeof(uint16_t)) == 0);
    return x;
  }
  const TensorView rounded = context.arena->take(DType::bf16, x.shape);
  launch(context, "linear", elements(x.dim(0), x.dim(1)), round_kernel, static_cast<uint16_t*>(rounded.data), x.f32(),
         x.row_stride, x.dim(1));
  return rounded;
}

// Features of a weight that are multiplied at a time. Whole blocks of scales.
int64_t features_of_piece(const WeightView& weight) {
  if (weight.dtype == DType::bf16) return weight.out_features;
  const int64_t bytes = weight.out_features * weight.in_features * static_cast<int64_t>(sizeof(uint16_t));
  const int64_t pieces = (bytes + kPromptPieceBytes - 1) / kPromptPieceBytes;
  const int64_t features = (weight.out_features + pieces - 1) / pieces;
  return std::min(weight.out_features, (features + kScaleBlock - 1) / kScaleBlock * kScaleBlock);
}

// The products of a weight without its row scales and bias. `out` is aligned.
void multiply(Context& context, const TensorView& out, const ConstTensorView& x, const WeightView& weight,
              bool accumulate, void* workspace) {
  const ArenaScope scope(*context.arena);
  const int64_t piece = features_of_piece(weight);
  uint16_t* decoded = nullptr;
  if (weight.dtype != DType::bf16) {
    decoded = static_cast<uint16_t*>(context.arena->take(DType::bf16, {piece, weight.in_features}).data);
  }
  for (int64_t first = 0; first < weight.out_features; first += piece) {
    const int64_t features = std::min(piece, weight.out_features - first);
    if (decoded != nullptr) {
      launch(context, "linear", in_chain(static_cast<unsigned>(features), kDecodeThreads), decode_kernel, decoded,
             weight, first);
    }
    context.prompt_products->multiply({.shape = {.rows = x.dim(0),
                                                 .out_features = features,
                                                 .in_features = weight.in_features,
                                                 .x_stride = x.row_stride,
                                                 .out_stride = out.row_stride,
                                                 .accumulate = accumulate},
                                       .x = x.data,
                                       .weight = decoded == nullptr ? static_cast<const void*>(weight.data) : decoded,
                                       .out = out.f32() + first,
                                       .scale = weight.global_scale},
                                      workspace);
  }
}

// All of a weight's products: at once, or by way of sums that have something to be done to.
void multiply_and_finish(Context& context, const TensorView& out, const ConstTensorView& x, const WeightView& weight,
                         bool accumulate, void* workspace) {
  if (is_aligned(out) && weight.row_scales == nullptr && weight.bias == nullptr) {
    return multiply(context, out, x, weight, accumulate, workspace);
  }
  const ArenaScope scope(*context.arena);
  const int64_t stride = (weight.out_features + 3) / 4 * 4;
  const TensorView sums = context.arena->take_f32({x.dim(0), stride});
  multiply(context, columns_of(sums, 0, weight.out_features), x, weight, false, workspace);
  launch(context, "linear", elements(x.dim(0), weight.out_features), finish_kernel, out.f32(), out.row_stride,
         static_cast<const float*>(sums.f32()), stride, weight, accumulate);
}

}  // namespace

bool prompt_takes(const Context& context, int64_t rows, const WeightView& weight) {
  if (context.prompt_products == nullptr || rows != kPromptRows) return false;
  if (weight.in_features % kCodes != 0 || !is_aligned(weight.data)) return false;
  return weight.dtype == DType::bf16 || weight.dtype == DType::f8_e4m3 || weight.dtype == DType::u8;
}

void linear_prompt(Context& context, const LinearArgs& args) {
  const ArenaScope scope(*context.arena);
  void* workspace = context.arena->take_f32({CublasLt::kWorkspaceBytes / sizeof(float)}).data;
  const ConstTensorView x = in_bf16(context, args.x);
  int64_t column = 0;
  for (const WeightView& weight : args.weights) {
    const TensorView out = columns_of(args.out, column, weight.out_features);
    multiply_and_finish(context, out, x, weight, args.accumulate, workspace);
    column += weight.out_features;
  }
}

void linear_silu_mul_prompt(Context& context, const LinearSiluMulArgs& args) {
  const ArenaScope scope(*context.arena);
  const int64_t rows = args.x.dim(0);
  const int64_t inner = args.out.dim(1);
  const WeightView both[] = {args.gate, args.up};
  const TensorView products = context.arena->take_f32({rows, 2 * inner});
  linear_prompt(context, {.out = products, .x = args.x, .weights = both});
  const auto finish = [&]<class Out>(Out* out) {
    launch(context, "linear_silu_mul", elements(rows, inner), silu_mul_kernel<Out>, out, args.out.row_stride,
           static_cast<const float*>(products.f32()), inner);
  };
  if (args.out.dtype == DType::bf16) return finish(static_cast<uint16_t*>(args.out.data));
  finish(args.out.f32());
}

}  // namespace blockdraft::cu
