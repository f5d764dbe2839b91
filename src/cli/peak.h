// Arithmetic that stays in registers, to measure what a processor can do at most.
#pragma once

#include <cstdint>

#include "base/cpu_isa.h"

namespace blockdraft {

struct PeakWork {
  int64_t flops = 0;
  float result = 0.0f;
};

// Some hundred thousand steps of value * factor + term in float32, as the kernels for `isa` make them: one rounding and
// vectors of 32 bytes (avx2) or 64 (avx512), two roundings and 16 bytes (portable); of avx512_bf16 two products a lane.
PeakWork multiply_and_add(CpuIsa isa);

}  // namespace blockdraft
