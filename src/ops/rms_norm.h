// Root mean square normalization.
#pragma once

#include "tensor/context.h"
#include "tensor/tensor_view.h"

namespace blockdraft {

// out[r, g, :] = x[r, g, :] / sqrt(mean(x[r, g, :]^2) + eps) * weight, for each group g of weight's length.
//   x, out: [rows, groups * dim] f32; out may be x.  weight: [dim] f32, groups = columns / dim.
//   On a card out may be BF16: the same, rounded; it must not overlap x then.
// groups = 1 is the norm of a layer, groups = heads the per-head norm of q and k (spec 1.4, 1.6).
void rms_norm(Context& context, TensorView out, ConstTensorView x, ConstTensorView weight, float eps);

namespace cpu {
void rms_norm(Context& context, TensorView out, ConstTensorView x, ConstTensorView weight, float eps);
}
namespace cu {
void rms_norm(Context& context, TensorView out, ConstTensorView x, ConstTensorView weight, float eps);
}

}  // namespace blockdraft
