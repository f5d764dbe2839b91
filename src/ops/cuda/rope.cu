#include "ops/cuda/launch.h"
#include "ops/cuda/overlap.cuh"
#include "ops/rope.h"

namespace blockdraft::cu {

namespace {

constexpr int kThreads = 128;

__global__ void rope_table_kernel(float* table, int64_t stride, const int32_t* positions, const float* inv_freq,
                                  int64_t half, float attention_factor) {
  begin_in_chain();
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= half) return;
  const int64_t r = blockIdx.y;
  const float angle = static_cast<float>(positions[r]) * inv_freq[i];
  table[r * stride + i] = cosf(angle) * attention_factor;
  table[r * stride + half + i] = sinf(angle) * attention_factor;
}

__global__ void rope_kernel(float* x, int64_t x_stride, const float* table, int64_t table_stride, int64_t half,
                            int64_t pairs) {
  begin_in_chain();
  const int64_t pair = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (pair >= pairs) return;
  const int64_t r = blockIdx.y;
  const int64_t i = pair % half;
  float* low = x + r * x_stride + pair / half * 2 * half + i;
  const float cosine = table[r * table_stride + i];
  const float sine = table[r * table_stride + half + i];
  const float a = low[0];
  const float b = low[half];
  low[0] = a * cosine - b * sine;
  low[half] = b * cosine + a * sine;
}

}  // namespace

void rope_table(Context& context, TensorView table, const int32_t* positions, ConstTensorView inv_freq,
                float attention_factor) {
  const int64_t half = inv_freq.dim(0);
  launch(context, "rope_table", in_chain({blocks_for(half, kThreads), static_cast<unsigned>(table.dim(0))}, kThreads),
         rope_table_kernel, table.f32(), table.row_stride, positions, inv_freq.f32(), half, attention_factor);
}

void rope(Context& context, TensorView x, ConstTensorView table) {
  const int64_t pairs = x.dim(1) / 2;
  launch(context, "rope", in_chain({blocks_for(pairs, kThreads), static_cast<unsigned>(x.dim(0))}, kThreads),
         rope_kernel, x.f32(), x.row_stride, table.f32(), table.row_stride, table.dim(1) / 2, pairs);
}

}  // namespace blockdraft::cu
