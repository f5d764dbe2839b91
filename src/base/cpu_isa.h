// The instruction sets that the CPU kernels are written for, and which one a process uses.
#pragma once

#include <string_view>

#include "blockdraft/result.h"

namespace blockdraft {

// In order: each has what those before it have.
enum class CpuIsa {
  portable,     // what the compiler's baseline has
  avx2,         // AVX2, FMA, F16C
  avx512,       // AVX-512 F, BW, DQ, VL
  avx512_bf16,  // AVX-512 BF16, VBMI, VNNI: products round activations to BF16 (ops/linear.h)
};

const char* name_of(CpuIsa isa);  // "portable", "avx2", "avx512", "avx512_bf16"

// The last one that this processor and this build have.
CpuIsa best_cpu_isa();

// Whether the kernels for AVX-512 VNNI may run: int8 products use them from avx512 on where the processor has it.
bool uses_avx512_vnni(CpuIsa isa);

// The one named, or, if `name` is empty, by the environment variable BLOCKDRAFT_CPU_ISA, or else the best one.
// Errors: an unknown name; a set that this processor does not have.
Result<CpuIsa> choose_cpu_isa(std::string_view name = {});

}  // namespace blockdraft
