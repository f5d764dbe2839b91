#include "ops/activation.h"
#include "ops/cuda/elementwise.cuh"
#include "ops/cuda/launch.h"
#include "ops/cuda/overlap.cuh"

namespace blockdraft::cu {

namespace {

constexpr int kThreads = 256;

// A thread an element: column and row of it.
__device__ int64_t column() { return int64_t{blockIdx.x} * kThreads + threadIdx.x; }
__device__ int64_t row() { return blockIdx.y; }

LaunchShape shape_of(const ConstTensorView& view) {
  return in_chain({blocks_for(view.dim(1), kThreads), static_cast<unsigned>(view.dim(0))}, kThreads);
}

struct Rows {
  float* data;
  int64_t stride;
  __device__ float& operator()(int64_t r, int64_t i) const { return data[r * stride + i]; }
};

struct ConstRows {
  const float* data;
  int64_t stride;
  __device__ float operator()(int64_t r, int64_t i) const { return data[r * stride + i]; }
};

Rows rows(const TensorView& view) { return {view.f32(), view.row_stride}; }
ConstRows rows(const ConstTensorView& view) { return {view.f32(), view.row_stride}; }

__global__ void silu_mul_kernel(Rows out, ConstRows gate_up, int64_t inner) {
  begin_in_chain();
  const int64_t i = column();
  if (i < inner) out(row(), i) = silu_mul(gate_up(row(), i), gate_up(row(), inner + i));
}

__global__ void scale_softcap_kernel(Rows z, int64_t columns, float multiplier, float softcap) {
  begin_in_chain();
  const int64_t i = column();
  if (i < columns) z(row(), i) = scale_softcap(z(row(), i), multiplier, softcap);
}

__global__ void accumulate_kernel(Rows out, ConstRows x, int64_t columns) {
  begin_in_chain();
  const int64_t i = column();
  if (i < columns) out(row(), i) += x(row(), i);
}

__global__ void sigmoid_mul_kernel(Rows out, ConstRows gate, ConstRows x, int64_t columns) {
  begin_in_chain();
  const int64_t i = column();
  if (i < columns) out(row(), i) = sigmoid(gate(row(), i)) * x(row(), i);
}

__global__ void gated_recurrence_kernel(Rows state, Rows out, ConstRows joint, int64_t columns) {
  begin_in_chain();
  const int64_t i = column();
  if (i >= columns) return;
  const int64_t r = row();
  const float keep = sigmoid(joint(r, i));
  state(r, i) = keep * state(r, i) + (1.0f - keep) * tanhf(joint(r, columns + i));
  out(r, i) = tanhf(joint(r, 2 * columns + i));
}

}  // namespace

void silu_mul(Context& context, TensorView out, ConstTensorView gate_up) {
  launch(context, "silu_mul", shape_of(out), silu_mul_kernel, rows(out), rows(gate_up), out.dim(1));
}

void scale_softcap(Context& context, TensorView z, float multiplier, float softcap) {
  launch(context, "scale_softcap", shape_of(z), scale_softcap_kernel, rows(z), z.dim(1), multiplier, softcap);
}

void accumulate(Context& context, TensorView out, ConstTensorView x) {
  launch(context, "accumulate", shape_of(out), accumulate_kernel, rows(out), rows(x), out.dim(1));
}

void sigmoid_mul(Context& context, TensorView out, ConstTensorView gate, ConstTensorView x) {
  launch(context, "sigmoid_mul", shape_of(out), sigmoid_mul_kernel, rows(out), rows(gate), rows(x), out.dim(1));
}

void gated_recurrence(Context& context, TensorView state, TensorView out, ConstTensorView joint) {
  launch(context, "gated_recurrence", shape_of(out), gated_recurrence_kernel, rows(state), rows(out), rows(joint),
         out.dim(1));
}

}  // namespace blockdraft::cu
