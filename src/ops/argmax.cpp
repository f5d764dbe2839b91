#include "ops/argmax.h"

#include "ops/check_views.h"
#include "ops/dispatch.h"

namespace blockdraft {

void argmax(Context& context, int32_t* ids, ConstTensorView logits, int64_t num_choices) {
  CHECK(is_f32_matrix(logits) && num_choices >= 1 && num_choices <= logits.dim(1));
  CHECK(ids != nullptr || logits.dim(0) == 0);
  BLOCKDRAFT_DISPATCH(context, argmax(context, ids, logits, num_choices));
}

}  // namespace blockdraft
