// Weights in the order in which products read them (tensor/int8_pack.h, tensor/dword_pack.h).
#pragma once

#include <cstddef>

#include "base/cpu_isa.h"
#include "base/thread_pool.h"
#include "blockdraft/result.h"
#include "tensor/buffer.h"
#include "tensor/weight_view.h"

namespace blockdraft {

// Zeroed memory for packs. Errors: out_of_memory, naming `what`.
Result<Buffer> allocate_packs(size_t size_bytes, const char* what);

// Whether products of this instruction set read such a weight faster from packs.
bool wants_packs(CpuIsa isa, const WeightView& weight);

// The codes of a BF16 or FP8 weight that is not packed yet, in packs: a copy, on all of the threads; without a pool on
// this one. Errors: out_of_memory.
Result<Buffer> pack_dwords(const WeightView& weight, ThreadPool* threads = nullptr);

}  // namespace blockdraft
