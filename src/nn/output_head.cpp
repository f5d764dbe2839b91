#include "nn/output_head.h"

#include "ops/activation.h"
#include "ops/linear.h"
#include "ops/linear_argmax.h"

namespace blockdraft {

void head_logits(Context& context, TensorView logits, ConstTensorView hidden, const OutputHead& head) {
  linear(context, {.out = logits, .x = hidden, .weights = {&head.weight, 1}});
  if (head.multiplier != 1.0f || head.softcap > 0.0f) {
    scale_softcap(context, logits, head.multiplier, head.softcap);
  }
}

void head_argmax(Context& context, int32_t* ids, ConstTensorView hidden, const OutputHead& head) {
  linear_argmax(context, {.ids = ids,
                          .x = hidden,
                          .weight = head.weight,
                          .num_choices = head.num_choices,
                          .multiplier = head.multiplier,
                          .softcap = head.softcap});
}

size_t logit_group_scratch_bytes(const WeightView& weight, int64_t rows) {
  const int64_t at_once = std::min(rows, kLogitRows);
  return arena_bytes_f32(at_once * weight.out_features) + linear_scratch_bytes(at_once, weight.in_features);
}

}  // namespace blockdraft
