// Elementwise ops.
#pragma once

#include "tensor/context.h"
#include "tensor/tensor_view.h"

namespace blockdraft {

// out[r, i] = silu(gate_up[r, i]) * gate_up[r, inner + i],  silu(x) = x / (1 + exp(-x))
//   gate_up: [rows, 2 * inner] f32, the stacked product of gate and up.  out: [rows, inner] f32.
// The definition of what linear_silu_mul() makes without that product in memory.
void silu_mul(Context& context, TensorView out, ConstTensorView gate_up);

// out[r, i] += x[r, i].   out, x: [rows, columns] f32.
void accumulate(Context& context, TensorView out, ConstTensorView x);

// out[r, i] = sigmoid(gate[r, i]) * x[r, i],  sigmoid(g) = 1 / (1 + exp(-g)).   All [rows, columns] f32; out may be x.
void sigmoid_mul(Context& context, TensorView out, ConstTensorView gate, ConstTensorView x);

// The recurrence of DSpark's rnn head (spec 5.2): joint = [gate | candidate | output], each as wide as the state.
//   state = sigmoid(gate) * state + (1 - sigmoid(gate)) * tanh(candidate);  out = tanh(output)
//   joint: [rows, 3 * columns] f32.  state, out: [rows, columns] f32.
void gated_recurrence(Context& context, TensorView state, TensorView out, ConstTensorView joint);

// z = z * multiplier, then z = tanh(z / softcap) * softcap if softcap > 0 (spec 1.9), in place.
//   z: [rows, columns] f32.
void scale_softcap(Context& context, TensorView z, float multiplier, float softcap);

namespace cpu {
void silu_mul(Context& context, TensorView out, ConstTensorView gate_up);
void scale_softcap(Context& context, TensorView z, float multiplier, float softcap);
void accumulate(Context& context, TensorView out, ConstTensorView x);
void sigmoid_mul(Context& context, TensorView out, ConstTensorView gate, ConstTensorView x);
void gated_recurrence(Context& context, TensorView state, TensorView out, ConstTensorView joint);
}  // namespace cpu
namespace cu {
void silu_mul(Context& context, TensorView out, ConstTensorView gate_up);
void scale_softcap(Context& context, TensorView z, float multiplier, float softcap);
void accumulate(Context& context, TensorView out, ConstTensorView x);
void sigmoid_mul(Context& context, TensorView out, ConstTensorView gate, ConstTensorView x);
void gated_recurrence(Context& context, TensorView state, TensorView out, ConstTensorView joint);
}  // namespace cu

}  // namespace blockdraft
