// The best candidates of each row.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/context.h"
#include "tensor/tensor_view.h"

namespace blockdraft {

// ids[r, 0 .. k-1] are the k largest of logits[r, 0 .. num_choices - 1], by (logit descending, id ascending), and
// values[r, i] = logits[r, ids[r, i]]. If any logit of the row is NaN, all its ids are kNotANumber (ops/argmax.h).
//   logits: [rows, columns] f32.  ids: [rows * k].  values: [rows, k] f32.  1 <= k <= num_choices <= columns.
// On a card k is at most kMaxTopK (ops/cuda/support.h).
void top_k(Context& context, int32_t* ids, TensorView values, ConstTensorView logits, int64_t num_choices);

namespace cpu {
void top_k(Context& context, int32_t* ids, TensorView values, ConstTensorView logits, int64_t num_choices);
}
namespace cu {
void top_k(Context& context, int32_t* ids, TensorView values, ConstTensorView logits, int64_t num_choices);
size_t top_k_scratch_bytes(int64_t rows, int64_t k, int64_t num_choices);
}  // namespace cu

}  // namespace blockdraft
