// Elementwise ops.
#pragma once

#include "tensor/context.h"
#include "tensor/tensor_view.h"

namespace blockdraft {

// out[r, i] = silu(gate_up[r, i]) * gate_up[r, inner + i],  silu(x) = x / (1 + exp(-x))
//   gate_up: [rows, 2 * inner] f32, the stacked product of gate and up.  out: [rows, inner] f32.
void silu_mul(Context& context, TensorView out, ConstTensorView gate_up);

// z = z * multiplier, then z = tanh(z / softcap) * softcap if softcap > 0 (spec 1.9), in place.
//   z: [rows, columns] f32.
void scale_softcap(Context& context, TensorView z, float multiplier, float softcap);

namespace cpu {
void silu_mul(Context& context, TensorView out, ConstTensorView gate_up);
void scale_softcap(Context& context, TensorView z, float multiplier, float softcap);
}  // namespace cpu

}  // namespace blockdraft
