#include "ops/attention.h"

#include "ops/check_batch.h"
#include "ops/check_views.h"
#include "ops/dispatch.h"

namespace blockdraft {

void attention(Context& context, const AttentionArgs& args) {
  CHECK(is_activation_matrix(context, args.out) && is_f32_matrix(args.q) && args.out.shape == args.q.shape);
  CHECK(is_valid_batch(args.batch) && is_valid_kv(args.kv));
  CHECK(args.q.dim(0) == args.batch.num_rows);
  CHECK(args.num_heads > 0 && args.num_heads % args.kv.num_kv_heads == 0);
  CHECK(args.q.dim(1) == static_cast<int64_t>(args.num_heads) * args.kv.head_dim);
  CHECK(args.kv.head_dim % 2 == 0 && args.window >= 0);
  if (args.out.dtype != DType::f32) {
    CHECK(is_f32_matrix(args.unrounded) && args.unrounded.shape == args.q.shape);
    CHECK(!overlap(args.out, args.q) && !overlap(args.out, args.unrounded));
  }
  BLOCKDRAFT_DISPATCH(context, attention(context, args));
}

}  // namespace blockdraft
