// What the ops ask of their arguments.
#pragma once

#include <cstddef>

#include "tensor/context.h"
#include "tensor/tensor_view.h"

namespace blockdraft {

// A matrix whose rows do not overlap.
inline bool is_matrix(const ConstTensorView& view) {
  return view.shape.rank() == 2 && (view.dim(0) <= 1 || view.row_stride >= view.dim(1)) &&
         (view.data != nullptr || view.shape.num_elements() == 0);
}

inline bool is_f32_matrix(const ConstTensorView& view) { return view.dtype == DType::f32 && is_matrix(view); }

// Float32, or BF16 on a card.
inline bool is_activation_matrix(const Context& context, const ConstTensorView& view) {
  const bool is_bf16 = view.dtype == DType::bf16 && context.cuda != nullptr;
  return (view.dtype == DType::f32 || is_bf16) && is_matrix(view);
}

inline bool is_f32_vector(const ConstTensorView& view) {
  return view.dtype == DType::f32 && view.shape.rank() == 1 && (view.data != nullptr || view.shape.num_elements() == 0);
}

// Of a row, and from one to the next.
inline int64_t row_bytes(const ConstTensorView& view) {
  return view.dim(1) * static_cast<int64_t>(size_of(view.dtype));
}
inline int64_t stride_bytes(const ConstTensorView& view) {
  return view.row_stride * static_cast<int64_t>(size_of(view.dtype));
}

// Columns of one buffer may be the input and other columns of it the output: rows interleave without overlapping.
inline bool are_interleaved(const ConstTensorView& a, const ConstTensorView& b) {
  const int64_t stride = stride_bytes(a);
  if (stride != stride_bytes(b) || stride <= 0) return false;
  const int64_t distance = static_cast<const std::byte*>(b.data) - static_cast<const std::byte*>(a.data);
  const int64_t shift = (distance % stride + stride) % stride;
  return shift >= row_bytes(a) && shift + row_bytes(b) <= stride;
}

// Whether two matrices have an element in common.
inline bool overlap(const ConstTensorView& a, const ConstTensorView& b) {
  if (a.shape.num_elements() == 0 || b.shape.num_elements() == 0) return false;
  const auto end_of = [](const ConstTensorView& view) {
    return static_cast<const std::byte*>(view.row_address(view.dim(0) - 1)) + row_bytes(view);
  };
  return static_cast<const std::byte*>(a.data) < end_of(b) && static_cast<const std::byte*>(b.data) < end_of(a) &&
         !are_interleaved(a, b);
}

}  // namespace blockdraft
