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

// Columns of one buffer may be the input and other columns of it the output: rows interleave without overlapping.
inline bool are_interleaved(const ConstTensorView& a, const ConstTensorView& b) {
  if (a.row_stride != b.row_stride || a.row_stride <= 0) return false;
  const int64_t shift = ((b.f32() - a.f32()) % a.row_stride + a.row_stride) % a.row_stride;
  return shift >= a.dim(1) && shift + b.dim(1) <= a.row_stride;
}

// Whether two float32 matrices have an element in common.
inline bool overlap(const ConstTensorView& a, const ConstTensorView& b) {
  if (a.shape.num_elements() == 0 || b.shape.num_elements() == 0) return false;
  const auto end_of = [](const ConstTensorView& view) { return view.row(view.dim(0) - 1) + view.dim(1); };
  return a.f32() < end_of(b) && b.f32() < end_of(a) && !are_interleaved(a, b);
}

}  // namespace blockdraft
