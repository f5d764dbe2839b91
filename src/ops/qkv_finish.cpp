#include "ops/qkv_finish.h"

#include "ops/check_batch.h"
#include "ops/check_views.h"
#include "ops/dispatch.h"

namespace blockdraft {

void qkv_finish(Context& context, const QkvFinishArgs& args) {
  CHECK(is_f32_matrix(args.q) && is_f32_matrix(args.k) && is_f32_matrix(args.v) && is_f32_matrix(args.rope));
  CHECK(is_valid_batch(args.batch) && is_valid_kv(args.kv));
  for (const ConstTensorView& view : {ConstTensorView(args.q), ConstTensorView(args.k), args.v, args.rope}) {
    CHECK(view.dim(0) == args.batch.num_rows);
  }
  const int64_t head_dim = args.kv.head_dim;
  CHECK(head_dim % 2 == 0 && args.rope.dim(1) == head_dim && args.q.dim(1) % head_dim == 0);
  CHECK(args.k.dim(1) == args.kv.num_kv_heads * head_dim && args.v.dim(1) == args.k.dim(1));
  CHECK((args.q_norm.data == nullptr) == (args.k_norm.data == nullptr) && args.eps >= 0.0f);
  for (const ConstTensorView* norm : {&args.q_norm, &args.k_norm}) {
    CHECK(norm->data == nullptr || (is_f32_vector(*norm) && norm->dim(0) == head_dim));
  }
  BLOCKDRAFT_DISPATCH(context, qkv_finish(context, args));
}

}  // namespace blockdraft
