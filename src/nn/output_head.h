// From final-normed hidden rows to logits and greedy choices (spec 1.9).
#pragma once

#include <algorithm>
#include <cstdint>

#include "ops/linear_argmax.h"
#include "tensor/context.h"
#include "tensor/tensor_view.h"
#include "tensor/weight_view.h"

namespace blockdraft {

struct OutputHead {
  WeightView weight;        // [vocabulary, hidden]
  float multiplier = 1.0f;  // z * multiplier, then the softcap
  float softcap = 0.0f;     // 0: none
  int64_t num_choices = 0;  // ids at and above are padding of the table: never chosen
};

// Logit rows are made this many at a time, so that scratch memory does not grow with the batch.
inline constexpr int64_t kLogitRows = 64;

// logits: [rows, vocabulary] f32.  hidden: [rows, hidden] f32.
void head_logits(Context& context, TensorView logits, ConstTensorView hidden, const OutputHead& head);

// Calls use(first, logits) with the logits of rows first .. first + logits.dim(0) - 1, group after group. The logits
// are `use`'s to change; they are gone after the call.
template <class Use>
void for_each_logit_group(Context& context, ConstTensorView hidden, const OutputHead& head, const Use& use) {
  const ArenaScope scope(*context.arena);
  const int64_t rows = hidden.dim(0);
  const TensorView logits = context.arena->take_f32({std::min(rows, kLogitRows), head.weight.out_features});
  for (int64_t first = 0; first < rows; first += kLogitRows) {
    const int64_t count = std::min(kLogitRows, rows - first);
    const TensorView group = rows_of(logits, 0, count);
    head_logits(context, group, rows_of(hidden, first, count), head);
    use(first, group);
  }
}
// Arena bytes that it takes beside what `use` does.
size_t logit_group_scratch_bytes(const WeightView& weight, int64_t rows);

// ids[r] = argmax of the logits of row r, lowest id on ties, kNotANumber if a logit is NaN: what argmax() finds in the
// rows of head_logits(), without writing them.
void head_argmax(Context& context, int32_t* ids, ConstTensorView hidden, const OutputHead& head);
inline size_t head_argmax_scratch_bytes(const WeightView& weight, int64_t rows) {
  return linear_argmax_scratch_bytes(rows, weight.in_features);
}

}  // namespace blockdraft
