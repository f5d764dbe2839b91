#include "ops/cuda/decode.cuh"
#include "ops/cuda/launch.h"
#include "ops/cuda/overlap.cuh"
#include "ops/embedding.h"

namespace blockdraft::cu {

namespace {

constexpr int kThreads = 256;

__global__ void embedding_kernel(float* out, int64_t out_stride, const int32_t* ids, WeightView table, float scale) {
  begin_in_chain();
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= table.in_features) return;
  const int64_t r = blockIdx.y;
  const int32_t id = ids[r];
  float value = __int_as_float(0x7fffffff);
  if (id >= 0 && id < table.out_features) {
    value = element_before_row_scale(table, id, i) * row_scale(table, id);
    if (scale != 1.0f) value *= scale;
  }
  out[r * out_stride + i] = value;
}

}  // namespace

void embedding(Context& context, TensorView out, const int32_t* ids, const WeightView& table, float scale) {
  launch(context, "embedding",
         in_chain({blocks_for(out.dim(1), kThreads), static_cast<unsigned>(out.dim(0))}, kThreads), embedding_kernel,
         out.f32(), out.row_stride, ids, table, scale);
}

}  // namespace blockdraft::cu
