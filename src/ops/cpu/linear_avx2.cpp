#if defined(__x86_64__)

#include <cstring>
#include <type_traits>

#include <immintrin.h>

#include "base/check.h"
#include "base/target_options.h"
#include "ops/cpu/linear_slice.h"
#include "tensor/codec.h"

BLOCKDRAFT_TARGET_BEGIN("avx2,fma,f16c")
#include "ops/cpu/linear_kernel.h"
#include "ops/cpu/simd_avx2.h"
// After the struct that it uses.
#include "ops/cpu/linear_float_kernel.h"

namespace blockdraft::cpu {

void multiply_avx2(const LinearTask& task, const Slice& slice) { multiply_float<Avx2>(task, slice); }

}  // namespace blockdraft::cpu
BLOCKDRAFT_TARGET_END

#endif
