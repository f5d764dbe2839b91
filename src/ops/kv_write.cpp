#include "ops/kv_write.h"

#include "ops/check_batch.h"
#include "ops/check_views.h"
#include "ops/dispatch.h"

namespace blockdraft {

void kv_write(Context& context, const PagedKvView& kv, const BatchView& batch, ConstTensorView k, ConstTensorView v) {
  CHECK(is_f32_matrix(k) && is_f32_matrix(v) && is_valid_batch(batch) && is_valid_kv(kv));
  CHECK(k.dim(0) == batch.num_rows && v.dim(0) == batch.num_rows);
  const int64_t columns = static_cast<int64_t>(kv.num_kv_heads) * kv.head_dim;
  CHECK(k.dim(1) == columns && v.dim(1) == columns);
  BLOCKDRAFT_DISPATCH(context, kv_write(context, kv, batch, k, v));
}

}  // namespace blockdraft
