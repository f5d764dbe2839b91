#include "ops/copy_rows.h"
#include "ops/cuda/launch.h"

namespace blockdraft::cu {

namespace {

constexpr int kThreads = 256;

__global__ void copy_rows_kernel(float* out, int64_t out_stride, const float* x, int64_t x_stride, int64_t columns,
                                 const int32_t* index) {
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= columns) return;
  const int64_t row = blockIdx.y;
  const int64_t from = index == nullptr ? row : index[row];
  out[row * out_stride + i] = x[from * x_stride + i];
}

}  // namespace

void copy_rows(Context& context, TensorView out, ConstTensorView x, const int32_t* index) {
  launch(context, "copy_rows", {{blocks_for(out.dim(1), kThreads), static_cast<unsigned>(out.dim(0))}, kThreads},
         copy_rows_kernel, out.f32(), out.row_stride, x.f32(), x.row_stride, out.dim(1), index);
}

void set_zero(Context& context, TensorView out) {
  context.cuda->fill(out.data, 0, static_cast<size_t>(out.shape.num_elements()) * sizeof(float), "set_zero");
}

}  // namespace blockdraft::cu
