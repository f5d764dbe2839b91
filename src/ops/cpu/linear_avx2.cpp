#if defined(__x86_64__)

#include <cstring>

#include <immintrin.h>

#include "base/check.h"
#include "base/target_options.h"
#include "ops/cpu/linear_slice.h"
#include "tensor/codec.h"

BLOCKDRAFT_TARGET_BEGIN("avx2,fma,f16c")
#include "ops/cpu/linear_kernel.h"
#include "ops/cpu/simd_avx2.h"

namespace blockdraft::cpu {

void multiply_avx2(const LinearArgs& args, const Slice& slice) { multiply<Avx2>(args, slice); }

}  // namespace blockdraft::cpu
BLOCKDRAFT_TARGET_END

#endif
