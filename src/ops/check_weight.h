// What the ops ask of a weight.
#pragma once

#include "tensor/weight_view.h"

namespace blockdraft {

// A type that the kernels read, and row scales exactly where the type needs them.
inline bool is_valid_weight(const WeightView& weight) {
  const bool unscaled = weight.dtype == DType::f32 || weight.dtype == DType::f16 || weight.dtype == DType::bf16;
  const bool scaled = weight.dtype == DType::f8_e4m3;
  return (unscaled || scaled) && scaled == (weight.row_scales != nullptr) && weight.data != nullptr &&
         weight.out_features > 0 && weight.in_features > 0;
}

}  // namespace blockdraft
