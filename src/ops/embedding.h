// Rows of an embedding table.
#pragma once

#include <cstdint>

#include "tensor/context.h"
#include "tensor/tensor_view.h"
#include "tensor/weight_view.h"

namespace blockdraft {

// out[r, :] = scale * table[ids[r], :]
//   ids: [rows], each in [0, table.out_features); on a card, where nobody has looked at an id that was chosen there,
//   another one gives a row of NaN.  out: [rows, in_features] f32.
void embedding(Context& context, TensorView out, const int32_t* ids, const WeightView& table, float scale);

namespace cpu {
void embedding(Context& context, TensorView out, const int32_t* ids, const WeightView& table, float scale);
}
namespace cu {
void embedding(Context& context, TensorView out, const int32_t* ids, const WeightView& table, float scale);
}

}  // namespace blockdraft
