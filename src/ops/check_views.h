// What the ops ask of their arguments.
#pragma once

#include "tensor/tensor_view.h"

namespace blockdraft {

// A float32 matrix whose rows do not overlap.
inline bool is_f32_matrix(const ConstTensorView& view) {
  return view.dtype == DType::f32 && view.shape.rank() == 2 && (view.dim(0) <= 1 || view.row_stride >= view.dim(1)) &&
         (view.data != nullptr || view.shape.num_elements() == 0);
}

inline bool is_f32_vector(const ConstTensorView& view) {
  return view.dtype == DType::f32 && view.shape.rank() == 1 && (view.data != nullptr || view.shape.num_elements() == 0);
}

}  // namespace blockdraft
