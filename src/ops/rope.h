// Rotary position embedding, half-split pairs (spec 7.1).
#pragma once

#include <cstdint>

#include "tensor/context.h"
#include "tensor/tensor_view.h"

namespace blockdraft {

// table[r, 0, i] = cos(positions[r] * inv_freq[i]) * attention_factor, table[r, 1, i] the same with sin.
//   table: [rows, 2 * half] f32 (cosines, then sines).  positions: [rows].  inv_freq: [half] f32.
// Made once a forward pass and used by all layers.
void rope_table(Context& context, TensorView table, const int32_t* positions, ConstTensorView inv_freq,
                float attention_factor);

// Rotates each head of x in place: y_i = x_i cos_i - x_{i+half} sin_i, y_{i+half} = x_{i+half} cos_i + x_i sin_i.
//   x: [rows, heads * head_dim] f32, head_dim = 2 * half (all of a head rotates).  table: as made above.
void rope(Context& context, TensorView x, ConstTensorView table);

namespace cpu {
void rope_table(Context& context, TensorView table, const int32_t* positions, ConstTensorView inv_freq,
                float attention_factor);
void rope(Context& context, TensorView x, ConstTensorView table);
}  // namespace cpu
namespace cu {
void rope_table(Context& context, TensorView table, const int32_t* positions, ConstTensorView inv_freq,
                float attention_factor);
void rope(Context& context, TensorView x, ConstTensorView table);
}  // namespace cu

}  // namespace blockdraft
