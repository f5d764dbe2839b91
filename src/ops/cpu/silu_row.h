// silu_mul() of one row (ops/activation.h): out[i] = silu(gate[i]) * up[i]. One function an instruction set.
#pragma once

#include <cstdint>

#include "base/cpu_isa.h"

namespace blockdraft::cpu {

using SiluMulRow = void (*)(float* out, const float* gate, const float* up, int64_t count);
SiluMulRow silu_mul_row_for(CpuIsa isa);

#if defined(__x86_64__)
void silu_mul_row_avx2(float* out, const float* gate, const float* up, int64_t count);
void silu_mul_row_avx512(float* out, const float* gate, const float* up, int64_t count);
#endif

}  // namespace blockdraft::cpu
