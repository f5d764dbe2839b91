#include "ops/copy_rows.h"

#include "ops/check_views.h"
#include "ops/dispatch.h"

namespace blockdraft {

void copy_rows(Context& context, TensorView out, ConstTensorView x, const int32_t* index) {
  CHECK(is_activation_matrix(context, out) && is_matrix(x) && out.dtype == x.dtype && out.dim(1) == x.dim(1));
  CHECK(index != nullptr || out.dim(0) <= x.dim(0));
  CHECK(!overlap(out, x));
  BLOCKDRAFT_DISPATCH(context, copy_rows(context, out, x, index));
}

void set_zero(Context& context, TensorView out) {
  CHECK(is_f32_matrix(out) && (out.dim(0) <= 1 || out.row_stride == out.dim(1)));
  BLOCKDRAFT_DISPATCH(context, set_zero(context, out));
}

}  // namespace blockdraft
