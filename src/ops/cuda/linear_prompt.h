// Products of the passes over a prompt: so many rows that reading the weights is no longer what takes the time.
// cuBLASLt multiplies (tensor/cublas_lt.h); here is what it is given, and what is left to do to its sums.
//
// x is rounded to BF16. BF16 weights are taken as they lie. FP8 and NVFP4 become BF16 in scratch, kPromptPieceBytes at
// a time: codes, and codes times group scales, are exact; codes times block scales are rounded, which the kernels of
// decoding do not do. Row scales, the global scale of NVFP4 and the bias are applied to the finished sums.
//
// A row's bits are a function of the row, the weight and the row's place among the kPromptRows.
#pragma once

#include <cstdint>

#include "ops/linear.h"
#include "ops/linear_silu_mul.h"

namespace blockdraft::cu {

inline constexpr int64_t kPromptPieceBytes = int64_t{128} << 20;

// Whether such a product is for this file: Context::prompt_products is there, the rows are a whole grid, and the
// weight is BF16, FP8 or NVFP4, aligned to 16 bytes, with in_features a multiple of 8.
bool prompt_takes(const Context& context, int64_t rows, const WeightView& weight);

// All weights are such.
void linear_prompt(Context& context, const LinearArgs& args);
void linear_silu_mul_prompt(Context& context, const LinearSiluMulArgs& args);

}  // namespace blockdraft::cu
