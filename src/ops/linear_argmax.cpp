#include "ops/linear_argmax.h"

#include "ops/check_views.h"
#include "ops/check_weight.h"
#include "ops/dispatch.h"

namespace blockdraft {

void linear_argmax(Context& context, const LinearArgmaxArgs& args) {
  CHECK(is_activation_matrix(context, args.x) && is_valid_weight(args.weight) &&
        args.weight.in_features == args.x.dim(1));
  CHECK(args.num_choices >= 1 && args.num_choices <= args.weight.out_features && args.softcap >= 0.0f);
  CHECK(args.ids != nullptr || args.x.dim(0) == 0);
  BLOCKDRAFT_DISPATCH(context, linear_argmax(context, args));
}

}  // namespace blockdraft
