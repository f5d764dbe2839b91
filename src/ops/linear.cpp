#include "ops/linear.h"

#include "ops/check_views.h"
#include "ops/check_weight.h"
#include "ops/dispatch.h"

namespace blockdraft {

void linear(Context& context, const LinearArgs& args) {
  CHECK(is_f32_matrix(args.out) && is_activation_matrix(context, args.x) && args.out.dim(0) == args.x.dim(0));
  int64_t columns = 0;
  for (const WeightView& weight : args.weights) {
    CHECK(is_valid_weight(weight) && weight.in_features == args.x.dim(1));
    columns += weight.out_features;
  }
  CHECK(columns == args.out.dim(1));
  CHECK(!overlap(args.out, args.x));
  BLOCKDRAFT_DISPATCH(context, linear(context, args));
}

}  // namespace blockdraft
