#include "ops/top_k.h"

#include "ops/check_views.h"
#include "ops/dispatch.h"

namespace blockdraft {

void top_k(Context& context, int32_t* ids, TensorView values, ConstTensorView logits, int64_t num_choices) {
  CHECK(is_f32_matrix(values) && is_f32_matrix(logits) && values.dim(0) == logits.dim(0));
  CHECK(values.dim(1) >= 1 && values.dim(1) <= num_choices && num_choices <= logits.dim(1));
  CHECK(ids != nullptr || logits.dim(0) == 0);
  BLOCKDRAFT_DISPATCH(context, top_k(context, ids, values, logits, num_choices));
}

}  // namespace blockdraft
