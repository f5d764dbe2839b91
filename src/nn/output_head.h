// From final-normed hidden rows to logits and greedy choices (spec 1.9).
#pragma once

#include <cstdint>

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

// ids[r] = argmax of the logits of row r, lowest id on ties, kNotANumber if a logit is NaN.
void head_argmax(Context& context, int32_t* ids, ConstTensorView hidden, const OutputHead& head);
size_t head_argmax_scratch_bytes(const WeightView& weight, int64_t rows);

}  // namespace blockdraft
