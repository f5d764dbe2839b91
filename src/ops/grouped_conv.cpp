#include "ops/grouped_conv.h"

#include "ops/check_batch.h"
#include "ops/check_views.h"
#include "ops/dispatch.h"

namespace blockdraft {

void grouped_conv(Context& context, const GroupedConvArgs& args) {
  CHECK(is_f32_matrix(args.out) && is_f32_matrix(args.x) && is_f32_matrix(args.base) && is_f32_matrix(args.dynamic));
  CHECK(args.out.shape == args.x.shape && args.x.dim(0) == args.batch.num_rows);
  CHECK(args.out.data != args.x.data || args.x.shape.num_elements() == 0);
  CHECK(args.base.dim(1) == args.x.dim(1) && args.base.dim(0) > 0);
  CHECK(args.group_size > 0 && args.x.dim(1) % args.group_size == 0);
  CHECK(args.dynamic.dim(0) == args.x.dim(0) &&
        args.dynamic.dim(1) == args.base.dim(0) * (args.x.dim(1) / args.group_size));
  CHECK(is_valid_batch(args.batch));
  BLOCKDRAFT_DISPATCH(context, grouped_conv(context, args));
}

}  // namespace blockdraft
