// The greedy choice.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/context.h"
#include "tensor/tensor_view.h"

namespace blockdraft {

inline constexpr int32_t kNotANumber = -1;

// ids[r] = the lowest index of the largest of logits[r, 0 .. num_choices - 1], or kNotANumber if any of them is NaN.
//   logits: [rows, columns] f32, num_choices <= columns: columns beyond it are never chosen.  ids: [rows].
void argmax(Context& context, int32_t* ids, ConstTensorView logits, int64_t num_choices);

namespace cpu {
void argmax(Context& context, int32_t* ids, ConstTensorView logits, int64_t num_choices);
}
namespace cu {
void argmax(Context& context, int32_t* ids, ConstTensorView logits, int64_t num_choices);
size_t argmax_scratch_bytes(int64_t rows);
}  // namespace cu

}  // namespace blockdraft
