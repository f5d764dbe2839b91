#if defined(__x86_64__)

#include <cstddef>
#include <cstdint>
#include <cstring>

#include <immintrin.h>

#include "base/target_options.h"
#include "ops/cpu/attention_group.h"

BLOCKDRAFT_TARGET_BEGIN("avx2,fma,f16c")
#include "ops/cpu/attention_kernel.h"
#include "ops/cpu/simd_math_avx2.h"

namespace blockdraft::cpu {

void reduce_group_avx2(QueryList queries, const Head& head, Range keys, float* scratch) {
  reduce_group<Avx2Math>(queries, head, keys, scratch);
}

}  // namespace blockdraft::cpu
BLOCKDRAFT_TARGET_END

#endif
