// How fast a card reads its memory: what a pass over weights is compared with. No op: it allocates and waits.
#pragma once

#include <cstddef>
#include <cstdint>

#include "blockdraft/result.h"
#include "tensor/context.h"
#include "tensor/cuda_device.h"

namespace blockdraft::cu {

struct MemoryRead {
  double bytes_per_s = 0;
  int64_t buffer_bytes = 0;
};

// The best of several passes over a buffer (blockdraft/device.h says how large), timed by events of
// the stream of `device`.  Errors: out_of_memory; io_error of the card.
Result<MemoryRead> read_bandwidth(CudaDevice& device);

// One pass: loads all of it, a multiple of 16 bytes, past the caches. `sink` is on the card, too, and may be written.
void read_memory(Context& context, const void* memory, size_t size_bytes, uint32_t* sink);

}  // namespace blockdraft::cu
