// The greedy choice straight from a product.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/context.h"
#include "tensor/tensor_view.h"
#include "tensor/weight_view.h"

namespace blockdraft {

// ids[r] = what argmax() finds among the first num_choices columns of z[r, :] (ops/argmax.h), where z is what linear()
// and scale_softcap() make of x and weight, bit for bit. No row of z is ever in memory.
//   ids: [rows].  x: [rows, in_features], of the types that linear() takes.
struct LinearArgmaxArgs {
  int32_t* ids = nullptr;
  ConstTensorView x;
  const WeightView& weight;
  int64_t num_choices = 0;  // 1 to weight.out_features
  float multiplier = 1.0f;
  float softcap = 0.0f;  // 0: none
};
void linear_argmax(Context& context, const LinearArgmaxArgs& args);

// Arena bytes that a call takes at most.
size_t linear_argmax_scratch_bytes(int64_t rows, int64_t in_features);

namespace cpu {
void linear_argmax(Context& context, const LinearArgmaxArgs& args);
}
namespace cu {
void linear_argmax(Context& context, const LinearArgmaxArgs& args);
size_t linear_argmax_scratch_bytes(int64_t rows);
}  // namespace cu

}  // namespace blockdraft
