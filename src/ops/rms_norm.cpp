#include "ops/rms_norm.h"

#include "ops/check_views.h"
#include "ops/dispatch.h"

namespace blockdraft {

void rms_norm(Context& context, TensorView out, ConstTensorView x, ConstTensorView weight, float eps) {
  CHECK(is_activation_matrix(context, out) && is_f32_matrix(x) && is_f32_vector(weight));
  CHECK(out.shape == x.shape && weight.dim(0) > 0 && x.dim(1) % weight.dim(0) == 0 && eps >= 0.0f);
  CHECK(out.dtype == x.dtype || !overlap(out, x));
  BLOCKDRAFT_DISPATCH(context, rms_norm(context, out, x, weight, eps));
}

}  // namespace blockdraft
