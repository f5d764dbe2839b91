#if defined(__x86_64__)

#include <cstddef>
#include <cstring>

#include <immintrin.h>

#include "base/target_options.h"
#include "exp_row.h"

BLOCKDRAFT_TARGET_BEGIN("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")
#include "ops/cpu/simd_exp.h"
#include "ops/cpu/simd_math_avx512.h"

namespace blockdraft::test {

void exp_row_avx512(float* values, int64_t count) {
  using Simd = cpu::Avx512Math;
  for (int64_t i = 0; i < count; i += Simd::kLanes) {
    const int64_t part = count - i < Simd::kLanes ? count - i : Simd::kLanes;
    Simd::store_first(values + i, cpu::exp_of<Simd>(Simd::load_first(values + i, part)), part);
  }
}

}  // namespace blockdraft::test
BLOCKDRAFT_TARGET_END

#endif
