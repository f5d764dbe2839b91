#include "nn/output_head.h"

#include <algorithm>

#include "ops/activation.h"
#include "ops/argmax.h"
#include "ops/linear.h"

namespace blockdraft {

void head_logits(Context& context, TensorView logits, ConstTensorView hidden, const OutputHead& head) {
  linear(context, {.out = logits, .x = hidden, .weights = {&head.weight, 1}});
  if (head.multiplier != 1.0f || head.softcap > 0.0f) {
    scale_softcap(context, logits, head.multiplier, head.softcap);
  }
}

void head_argmax(Context& context, int32_t* ids, ConstTensorView hidden, const OutputHead& head) {
  const ArenaScope scope(*context.arena);
  const int64_t rows = hidden.dim(0);
  const TensorView logits = context.arena->take_f32({std::min(rows, kLogitRows), head.weight.out_features});
  for (int64_t first = 0; first < rows; first += kLogitRows) {
    const int64_t count = std::min(kLogitRows, rows - first);
    const TensorView part_logits = rows_of(logits, 0, count);
    head_logits(context, part_logits, rows_of(hidden, first, count), head);
    argmax(context, ids + first, part_logits, head.num_choices);
  }
}

size_t head_argmax_scratch_bytes(const WeightView& weight, int64_t rows) {
  return arena_bytes_f32(std::min(rows, kLogitRows) * weight.out_features);
}

}  // namespace blockdraft
