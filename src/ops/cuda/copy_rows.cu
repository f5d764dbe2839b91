#include "ops/copy_rows.h"
#include "ops/cuda/launch.h"
#include "ops/cuda/overlap.cuh"

namespace blockdraft::cu {

namespace {

constexpr int kThreads = 256;

template <class Element>
__global__ void copy_rows_kernel(Element* out, int64_t out_stride, const Element* x, int64_t x_stride, int64_t columns,
                                 const int32_t* index) {
  begin_in_chain();
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= columns) return;
  const int64_t row = blockIdx.y;
  const int64_t from = index == nullptr ? row : index[row];
  out[row * out_stride + i] = x[from * x_stride + i];
}

template <class Element>
void run(Context& context, const TensorView& out, const ConstTensorView& x, const int32_t* index) {
  launch(context, "copy_rows",
         in_chain({blocks_for(out.dim(1), kThreads), static_cast<unsigned>(out.dim(0))}, kThreads),
         copy_rows_kernel<Element>, static_cast<Element*>(out.data), out.row_stride,
         static_cast<const Element*>(x.data), x.row_stride, out.dim(1), index);
}

}  // namespace

void copy_rows(Context& context, TensorView out, ConstTensorView x, const int32_t* index) {
  return out.dtype == DType::bf16 ? run<uint16_t>(context, out, x, index) : run<float>(context, out, x, index);
}

void set_zero(Context& context, TensorView out) {
  context.cuda->fill(out.data, 0, static_cast<size_t>(out.shape.num_elements()) * sizeof(float), "set_zero");
}

}  // namespace blockdraft::cu
