#if defined(__x86_64__)

#include <cstddef>
#include <cstdint>
#include <cstring>

#include <immintrin.h>

#include "base/target_options.h"
#include "ops/cpu/silu_row.h"

BLOCKDRAFT_TARGET_BEGIN("avx2,fma,f16c")
#include "ops/cpu/simd_math_avx2.h"
#include "ops/cpu/simd_silu.h"

namespace blockdraft::cpu {

void silu_mul_row_avx2(float* out, const float* gate, const float* up, int64_t count) {
  silu_mul_row<Avx2Math>(out, gate, up, count);
}

}  // namespace blockdraft::cpu
BLOCKDRAFT_TARGET_END

#endif
