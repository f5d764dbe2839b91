#include "ops/embedding.h"

#include "ops/check_views.h"
#include "ops/check_weight.h"
#include "ops/dispatch.h"

namespace blockdraft {

void embedding(Context& context, TensorView out, const int32_t* ids, const WeightView& table, float scale) {
  CHECK(is_f32_matrix(out) && is_valid_weight(table) && !table.is_packed && table.bias == nullptr);
  CHECK(out.dim(1) == table.in_features);
  CHECK(ids != nullptr || out.dim(0) == 0);
  BLOCKDRAFT_DISPATCH(context, embedding(context, out, ids, table, scale));
}

}  // namespace blockdraft
