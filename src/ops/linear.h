// Matrix products with stored weights.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "tensor/context.h"
#include "tensor/tensor_view.h"
#include "tensor/weight_view.h"

namespace blockdraft {

// Prompts are read in passes of so many positions, at multiples of that.
inline constexpr int32_t kPromptRows = 256;

// out[r, n] = scale[n] * sum_k x[r, k] * W[n, k] + bias[n]   (+ out[r, n] if accumulate)
// scale[n] is the row scale of FP8, if the weight has one (tensor/weight_view.h); W has its other scales in it.
// where W is the stack of `weights` along the output dimension: q, k and v, or gate and up, are one call.
//   x: [rows, in_features] f32; on a card also BF16 with rows at multiples of 16 bytes.  out: [rows, sum of
//   out_features] f32.  Both may have a row stride.
//   out must not overlap x. rows may be 0.
// With a weight of type I8, x is int8, too: a group of 32 columns of a row is rounded to codes and a scale of its own
// (ops/cpu/int8_rows.h), and the product is the sum over the groups, in order, of
//   (sum of the products of codes, exact) * (scale of the weight's group * scale of the row's group).
// The sum runs in an order that depends on in_features alone: a row's result has the same bits whatever the number of
// rows, their contents, the number of threads, or the weights stacked beside it (docs/architecture.md). Each weight
// comes out of memory once for all rows of the call.
// With CpuIsa::avx512_bf16, x is rounded to BF16 for weights in BF16, FP8 and NVFP4 if `rounds` (subnormal numbers
// count as zero); products and sums are float32 everywhere.
// With Context::prompt_products, a call of kPromptRows rows has an order of its own (ops/cuda/linear_prompt.h).
struct LinearArgs {
  TensorView out;
  ConstTensorView x;
  std::span<const WeightView> weights;
  bool accumulate = false;
  bool rounds = true;  // false: x stays float32 whatever the instruction set, but for weights of type I8
};
void linear(Context& context, const LinearArgs& args);

// Arena bytes that a call with so many rows takes at most, whatever the weights and the instruction set.
size_t linear_scratch_bytes(int64_t rows, int64_t in_features);

namespace cpu {
void linear(Context& context, const LinearArgs& args);
}
namespace cu {
void linear(Context& context, const LinearArgs& args);
}

}  // namespace blockdraft
