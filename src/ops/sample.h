// Random choices from rows of logits (spec 6.3; docs/architecture.md). Each row by itself, in a fixed order.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/noise.h"
#include "tensor/context.h"
#include "tensor/tensor_view.h"

namespace blockdraft {

// How the token of one row is drawn.
struct RowSampling {
  float temperature = 0.0f;  // 0: not at all, the row is left alone
  int32_t top_k = 0;         // 0 or the number of choices and more: off
  float top_p = 1.0f;        // 1: off
  float min_p = 0.0f;        // 0: off
  NoiseKey noise;
};

// [count], uninitialized, from the arena; and the bytes that this takes.
RowSampling* take_row_samplings(Arena& arena, int64_t count);
size_t row_samplings_bytes(int64_t count);

// Turns logits into scores, in place: logit / temperature, and -infinity for ids that may not be drawn. The law of the
// row is the softmax of its scores. Kept are, one filter after the other:
//   top_k: the top_k largest scores; of equal ones the lower ids.
//   top_p: ids before which, by (score descending, id ascending), there is less than top_p of the kept probability.
//   min_p: ids with at least min_p times the probability of the most likely one.
//   logits: [rows, columns] f32.  rows: [rows].  1 <= num_choices <= columns; columns beyond it are not touched.
// A row in which a logit is NaN or +infinity keeps its logits, divided by the temperature.
void to_scores(Context& context, TensorView logits, int64_t num_choices, const RowSampling* rows);

// ids[r] = argmax over i < num_choices of scores[r, i] + gumbel(noise of r, id of i), the first i of equals: a draw
// from the softmax of the scores. kNotANumber (ops/argmax.h) if a score is NaN or +infinity, or none is finite. Rows
// with temperature 0 are skipped: their ids stay.
//   target_ids: [num_choices] the id that column i stands for, or null: i itself. Noise goes by that id; ids[r] is a
//   column.  scores: [rows, columns] f32.
void sample(Context& context, int32_t* ids, ConstTensorView scores, int64_t num_choices, const RowSampling* rows,
            const int32_t* target_ids);

// What candidate_walk() adds to the scores so that its largest is a draw with probabilities softmax(score / T):
//   noise[r, c] = T * gumbel(noise of r, candidates[r * K + c]);  0 for a row with temperature 0 or without candidates
//   noise: [rows, K] f32.  candidates: [rows * K], kNotANumber throughout a row without.  rows: [rows].
void candidate_noise(Context& context, TensorView noise, const int32_t* candidates, const RowSampling* rows);

// Probabilities of some ids, 0 for all others.
struct ProbabilityRow {
  const int32_t* ids = nullptr;  // [count] distinct; null: 0 .. count - 1
  const float* values = nullptr;
  int64_t count = 0;
};

// probabilities[i] = softmax of scores[0 .. count - 1]; may be in place. One row: [count] f32 each, one finite at
// least.
void softmax_row(float* probabilities, const float* scores, int64_t count);

namespace cpu {
void to_scores(Context& context, TensorView logits, int64_t num_choices, const RowSampling* rows);
void sample(Context& context, int32_t* ids, ConstTensorView scores, int64_t num_choices, const RowSampling* rows,
            const int32_t* target_ids);
void candidate_noise(Context& context, TensorView noise, const int32_t* candidates, const RowSampling* rows);
void softmax_row(float* probabilities, const float* scores, int64_t count);
}  // namespace cpu
namespace cu {
void to_scores(Context& context, TensorView logits, int64_t num_choices, const RowSampling* rows);
void sample(Context& context, int32_t* ids, ConstTensorView scores, int64_t num_choices, const RowSampling* rows,
            const int32_t* target_ids);
void candidate_noise(Context& context, TensorView noise, const int32_t* candidates, const RowSampling* rows);
size_t sample_scratch_bytes(int64_t rows);
}  // namespace cu

}  // namespace blockdraft
