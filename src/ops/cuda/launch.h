// Launching kernels on the stream of a Context's card.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include <cuda_runtime.h>

#include "tensor/context.h"
#include "tensor/cuda_device.h"

namespace blockdraft::cu {

struct LaunchShape {
  dim3 grid;
  dim3 block;
  size_t shared_bytes = 0;  // dynamic
  // As much of a multiprocessor's memory as can be is shared memory: several blocks of a kernel that uses much of it
  // fit, and a neighbour in time that wants the same need not wait for the memory to be divided anew.
  bool prefers_shared = false;
  // The kernel may begin while the one before it on the stream is still running. It must call wait_for_predecessor()
  // (ops/cuda/overlap.cuh) in every thread before it touches what that one writes, and before it ends.
  bool overlaps = false;
};

// A kernel of a pass overlaps with its neighbours, and has its memory divided as they have.
inline LaunchShape in_chain(dim3 grid, dim3 block, size_t shared_bytes = 0) {
  return {.grid = grid, .block = block, .shared_bytes = shared_bytes, .prefers_shared = true, .overlaps = true};
}

// A failed launch is an error of the next CudaDevice::synchronize(), by the name `what`, a literal. An empty grid
// launches nothing.
template <class... Params, class... Args>
void launch(Context& context, const char* what, const LaunchShape& shape, void (*kernel)(Params...), Args&&... args) {
  if (shape.grid.x == 0 || shape.grid.y == 0 || shape.grid.z == 0) return;
  CudaDevice& device = *context.cuda;
  if (device.skips()) return;
  constexpr size_t kWithoutAsking = 48 * 1024;
  if (shape.shared_bytes > kWithoutAsking) {
    device.note(cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel), cudaFuncAttributeMaxDynamicSharedMemorySize,
                                     static_cast<int>(shape.shared_bytes)),
                what);
  }
  if (shape.prefers_shared) {
    device.note(cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel),
                                     cudaFuncAttributePreferredSharedMemoryCarveout, cudaSharedmemCarveoutMaxShared),
                what);
  }
  cudaLaunchAttribute overlap{};
  overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  overlap.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.attrs = &overlap;
  // Other cards run the PTX for 8.0, in which nothing waits.
  config.numAttrs = shape.overlaps && device.compute_capability() == 90 ? 1 : 0;
  config.gridDim = shape.grid;
  config.blockDim = shape.block;
  config.dynamicSmemBytes = shape.shared_bytes;
  config.stream = device.stream();
  device.note(cudaLaunchKernelEx(&config, kernel, std::forward<Args>(args)...), what);
}

inline unsigned blocks_for(int64_t items, int64_t per_block) {
  return static_cast<unsigned>((items + per_block - 1) / per_block);
}

}  // namespace blockdraft::cu
