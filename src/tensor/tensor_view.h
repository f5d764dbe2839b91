// Plain views of activations: what ops read and write. A view owns nothing and is passed by value.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

namespace blockdraft {

// Dimension 0 has its own stride (so that columns of a wider matrix can be viewed); the others are contiguous.
struct ConstTensorView {
  const void* data = nullptr;
  DType dtype = DType::f32;
  Shape shape;
  int64_t row_stride = 0;  // elements between neighbours in dimension 0

  int64_t dim(int axis) const { return shape[axis]; }
  const float* f32() const {
    DCHECK(dtype == DType::f32);
    return static_cast<const float*>(data);
  }
  const float* row(int64_t index) const { return f32() + index * row_stride; }
  // Where a row begins, whatever its type.
  const void* row_address(int64_t index) const {
    return static_cast<const std::byte*>(data) + index * row_stride * static_cast<int64_t>(size_of(dtype));
  }
};

struct TensorView {
  void* data = nullptr;
  DType dtype = DType::f32;
  Shape shape;
  int64_t row_stride = 0;

  operator ConstTensorView() const { return {data, dtype, shape, row_stride}; }  // NOLINT(google-explicit-constructor)

  int64_t dim(int axis) const { return shape[axis]; }
  float* f32() const {
    DCHECK(dtype == DType::f32);
    return static_cast<float*>(data);
  }
  float* row(int64_t index) const { return f32() + index * row_stride; }
  void* row_address(int64_t index) const {
    return static_cast<std::byte*>(data) + index * row_stride * static_cast<int64_t>(size_of(dtype));
  }
};

// Contiguous views.
inline TensorView contiguous_view(void* data, DType dtype, Shape shape) {
  return {data, dtype, shape, shape.rank() == 0 ? 0 : shape.num_elements() / (shape[0] == 0 ? 1 : shape[0])};
}
inline TensorView view_f32(float* data, Shape shape) { return contiguous_view(data, DType::f32, shape); }
inline ConstTensorView view_f32(const float* data, Shape shape) {
  return {data, DType::f32, shape, shape.rank() == 0 ? 0 : shape.num_elements() / (shape[0] == 0 ? 1 : shape[0])};
}

// Rows [first, first + count) and columns [first, first + count) of a rank-2 view.
inline TensorView rows_of(const TensorView& view, int64_t first, int64_t count) {
  CHECK(view.shape.rank() == 2 && first >= 0 && first + count <= view.dim(0));
  return {view.row_address(first), view.dtype, Shape{count, view.dim(1)}, view.row_stride};
}
inline ConstTensorView rows_of(const ConstTensorView& view, int64_t first, int64_t count) {
  CHECK(view.shape.rank() == 2 && first >= 0 && first + count <= view.dim(0));
  return {view.row_address(first), view.dtype, Shape{count, view.dim(1)}, view.row_stride};
}
inline TensorView columns_of(const TensorView& view, int64_t first, int64_t count) {
  CHECK(view.shape.rank() == 2 && first >= 0 && first + count <= view.dim(1));
  auto* begin = static_cast<std::byte*>(view.data) + first * static_cast<int64_t>(size_of(view.dtype));
  return {begin, view.dtype, Shape{view.dim(0), count}, view.row_stride};
}

}  // namespace blockdraft
