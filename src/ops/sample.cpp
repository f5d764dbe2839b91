#include "ops/sample.h"

#include "base/check.h"
#include "ops/check_views.h"

namespace blockdraft {

void to_scores(Context& context, TensorView logits, int64_t num_choices, const RowSampling* rows) {
  CHECK(is_f32_matrix(logits) && num_choices >= 1 && num_choices <= logits.dim(1));
  CHECK(rows != nullptr || logits.dim(0) == 0);
  cpu::to_scores(context, logits, num_choices, rows);
}

void sample(Context& context, int32_t* ids, ConstTensorView scores, int64_t num_choices, const RowSampling* rows,
            const int32_t* target_ids) {
  CHECK(is_f32_matrix(scores) && num_choices >= 1 && num_choices <= scores.dim(1));
  CHECK((ids != nullptr && rows != nullptr) || scores.dim(0) == 0);
  cpu::sample(context, ids, scores, num_choices, rows, target_ids);
}

void softmax_row(float* probabilities, const float* scores, int64_t count) {
  CHECK(count >= 1);
  cpu::softmax_row(probabilities, scores, count);
}

}  // namespace blockdraft
