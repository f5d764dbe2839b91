// Reads memory as fast as a core can, to measure what a pass over weights can reach at most.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/cpu_isa.h"

namespace blockdraft {

// Bytes that one call reads: several streams of some pages each, far enough apart that the prefetchers follow all.
inline constexpr size_t kStreamChunkBytes = size_t{1} << 18;

// A sum of the chunk at `data`, so that every byte is needed. With the widest loads of the kernels for `isa`: 16 bytes
// (portable), 32 (avx2), 64 (avx512 and above).
uint64_t read_chunk(CpuIsa isa, const std::byte* data);

}  // namespace blockdraft
