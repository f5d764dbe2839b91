#include "ops/sample.h"

#include <memory>
#include <type_traits>

#include "base/check.h"
#include "ops/check_views.h"
#include "ops/dispatch.h"

namespace blockdraft {

// The arena's memory is aligned for anything and not destroyed.
RowSampling* take_row_samplings(Arena& arena, int64_t count) {
  static_assert(std::is_trivially_destructible_v<RowSampling> && alignof(RowSampling) <= Arena::kAlignment);
  void* memory = arena.take_i32(static_cast<int64_t>(row_samplings_bytes(count) / sizeof(int32_t)));
  auto* samplings = static_cast<RowSampling*>(memory);
  std::uninitialized_default_construct_n(samplings, count);
  return samplings;
}

size_t row_samplings_bytes(int64_t count) {
  static_assert(sizeof(RowSampling) % sizeof(float) == 0);
  return arena_bytes_f32(count * static_cast<int64_t>(sizeof(RowSampling) / sizeof(float)));
}

void to_scores(Context& context, TensorView logits, int64_t num_choices, const RowSampling* rows) {
  CHECK(is_f32_matrix(logits) && num_choices >= 1 && num_choices <= logits.dim(1));
  CHECK(rows != nullptr || logits.dim(0) == 0);
  BLOCKDRAFT_DISPATCH(context, to_scores(context, logits, num_choices, rows));
}

void sample(Context& context, int32_t* ids, ConstTensorView scores, int64_t num_choices, const RowSampling* rows,
            const int32_t* target_ids) {
  CHECK(is_f32_matrix(scores) && num_choices >= 1 && num_choices <= scores.dim(1));
  CHECK((ids != nullptr && rows != nullptr) || scores.dim(0) == 0);
  BLOCKDRAFT_DISPATCH(context, sample(context, ids, scores, num_choices, rows, target_ids));
}

void candidate_noise(Context& context, TensorView noise, const int32_t* candidates, const RowSampling* rows) {
  CHECK(is_f32_matrix(noise) && ((candidates != nullptr && rows != nullptr) || noise.dim(0) == 0));
  BLOCKDRAFT_DISPATCH(context, candidate_noise(context, noise, candidates, rows));
}

void softmax_row(float* probabilities, const float* scores, int64_t count) {
  CHECK(count >= 1);
  cpu::softmax_row(probabilities, scores, count);
}

}  // namespace blockdraft
