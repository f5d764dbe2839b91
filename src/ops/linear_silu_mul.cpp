#include "ops/linear_silu_mul.h"

#include "ops/check_views.h"
#include "ops/check_weight.h"
#include "ops/dispatch.h"

namespace blockdraft {

void linear_silu_mul(Context& context, const LinearSiluMulArgs& args) {
  CHECK(is_activation_matrix(context, args.out) && is_activation_matrix(context, args.x) &&
        args.out.dim(0) == args.x.dim(0));
  for (const WeightView* weight : {&args.gate, &args.up}) {
    CHECK(is_valid_weight(*weight) && weight->in_features == args.x.dim(1));
    CHECK(weight->out_features == args.out.dim(1));
  }
  CHECK(!overlap(args.out, args.x));
  BLOCKDRAFT_DISPATCH(context, linear_silu_mul(context, args));
}

}  // namespace blockdraft
