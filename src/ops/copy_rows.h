// Rows from one place to another.
#pragma once

#include <cstdint>

#include "tensor/context.h"
#include "tensor/tensor_view.h"

namespace blockdraft {

// out[r, :] = x[index[r], :]; index null: x[r, :].
//   x: [rows of x, columns] f32, on a card also BF16.  out: [rows, columns] of the same type; must not overlap x.
//   index: [rows], each a row of x.
void copy_rows(Context& context, TensorView out, ConstTensorView x, const int32_t* index);

// out = 0.   out: [rows, columns] f32 without gaps.
void set_zero(Context& context, TensorView out);

namespace cpu {
void copy_rows(Context& context, TensorView out, ConstTensorView x, const int32_t* index);
void set_zero(Context& context, TensorView out);
}  // namespace cpu
namespace cu {
void copy_rows(Context& context, TensorView out, ConstTensorView x, const int32_t* index);
void set_zero(Context& context, TensorView out);
}  // namespace cu

}  // namespace blockdraft
