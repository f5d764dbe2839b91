// Looking at memory of a card at once, where time does not matter.
#pragma once

#include <cstddef>

#include "base/check.h"
#include "base/has_cuda.h"
#include "tensor/cuda_device.h"

namespace blockdraft {

// Waits for the stream. If that or the copy fails, `to` is left alone and the next synchronize() says why.
inline void read_back(CudaDevice& device, void* to, const void* from, size_t size_bytes) {
  CHECK(kHasCuda);
  if constexpr (kHasCuda) {
    device.copy_to_host(to, from, size_bytes, "reading back");
    device.wait();
  }
}

}  // namespace blockdraft
