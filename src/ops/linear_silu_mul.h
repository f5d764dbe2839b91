// The gated product of an MLP.
#pragma once

#include "tensor/context.h"
#include "tensor/tensor_view.h"
#include "tensor/weight_view.h"

namespace blockdraft {

// out = silu_mul(linear(x, {gate, up})) (ops/activation.h), bit for bit. The products of gate and up are never in
// memory as a whole.
//   x: [rows, in_features], of the types that linear() takes.  gate, up: [inner, in_features].
//   out: [rows, inner] f32, on a card also BF16: the same, rounded; must not overlap x.
// Takes linear_scratch_bytes(rows, in_features) of the arena.
struct LinearSiluMulArgs {
  TensorView out;
  ConstTensorView x;
  const WeightView& gate;
  const WeightView& up;
};
void linear_silu_mul(Context& context, const LinearSiluMulArgs& args);

namespace cpu {
void linear_silu_mul(Context& context, const LinearSiluMulArgs& args);
}
namespace cu {
void linear_silu_mul(Context& context, const LinearSiluMulArgs& args);
}

}  // namespace blockdraft
