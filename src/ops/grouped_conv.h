// The grouped dynamic causal convolution of DFlash2 (spec 4.1).
#pragma once

#include <cstdint>

#include "tensor/batch_view.h"
#include "tensor/context.h"
#include "tensor/tensor_view.h"

namespace blockdraft {

// out[i, c] = sum_t (base[t, c] + dynamic[i, t * groups + c / group_size]) * x[i - t, c],  t = 0 .. taps - 1 in order
//   x, out: [rows, channels] f32, not overlapping.  base: [taps, channels] f32.
//   dynamic: [rows, taps * groups] f32, groups = channels / group_size.
// Row i - t counts as 0 where it lies before the first row of i's sequence in the batch: the convolution never leaves
// the block.
struct GroupedConvArgs {
  TensorView out;
  ConstTensorView x;
  ConstTensorView base;
  ConstTensorView dynamic;
  BatchView batch;
  int64_t group_size = 0;
};
void grouped_conv(Context& context, const GroupedConvArgs& args);

namespace cpu {
void grouped_conv(Context& context, const GroupedConvArgs& args);
}
namespace cu {
void grouped_conv(Context& context, const GroupedConvArgs& args);
}

}  // namespace blockdraft
