// The exponential function of the kernels (ops/cpu/simd_exp.h) over a row, in place.
#pragma once

#include <cstdint>

namespace blockdraft::test {

#if defined(__x86_64__)
void exp_row_avx2(float* values, int64_t count);
void exp_row_avx512(float* values, int64_t count);
#endif

}  // namespace blockdraft::test
