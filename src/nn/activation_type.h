// The type of activations that only products read.
#pragma once

#include "tensor/context.h"

namespace blockdraft {

// BF16 on a card, whose fast products round what they read anyway; float32 on a CPU. The residual stream, and what
// other ops read, is float32 everywhere.
inline DType activation_type(const Context& context) { return context.cuda == nullptr ? DType::f32 : DType::bf16; }

// From the arena. Takes arena_bytes_f32(shape.num_elements()) at most.
inline TensorView take_activations(Context& context, Shape shape) {
  return context.arena->take(activation_type(context), shape);
}

}  // namespace blockdraft
