#include "ops/activation.h"

#include "ops/check_views.h"
#include "ops/dispatch.h"

namespace blockdraft {

void silu_mul(Context& context, TensorView out, ConstTensorView gate_up) {
  CHECK(is_f32_matrix(out) && is_f32_matrix(gate_up));
  CHECK(gate_up.dim(0) == out.dim(0) && gate_up.dim(1) == 2 * out.dim(1));
  BLOCKDRAFT_DISPATCH(context, silu_mul(context, out, gate_up));
}

void scale_softcap(Context& context, TensorView z, float multiplier, float softcap) {
  CHECK(is_f32_matrix(z) && softcap >= 0.0f);
  if (multiplier == 1.0f && softcap == 0.0f) return;
  BLOCKDRAFT_DISPATCH(context, scale_softcap(context, z, multiplier, softcap));
}

void accumulate(Context& context, TensorView out, ConstTensorView x) {
  CHECK(is_f32_matrix(out) && is_f32_matrix(x) && out.shape == x.shape);
  BLOCKDRAFT_DISPATCH(context, accumulate(context, out, x));
}

void sigmoid_mul(Context& context, TensorView out, ConstTensorView gate, ConstTensorView x) {
  CHECK(is_f32_matrix(out) && is_f32_matrix(gate) && is_f32_matrix(x));
  CHECK(out.shape == x.shape && gate.shape == x.shape);
  BLOCKDRAFT_DISPATCH(context, sigmoid_mul(context, out, gate, x));
}

void gated_recurrence(Context& context, TensorView state, TensorView out, ConstTensorView joint) {
  CHECK(is_f32_matrix(state) && is_f32_matrix(out) && is_f32_matrix(joint));
  CHECK(state.shape == out.shape && joint.dim(0) == out.dim(0) && joint.dim(1) == 3 * out.dim(1));
  BLOCKDRAFT_DISPATCH(context, gated_recurrence(context, state, out, joint));
}

}  // namespace blockdraft
