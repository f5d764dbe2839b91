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
};

// A failed launch is an error of the next CudaDevice::synchronize(), by the name `what`, a literal. An empty grid
// launches nothing.
template <class... Params, class... Args>
void launch(Context& context, const char* what, const LaunchShape& shape, void (*kernel)(Params...), Args&&... args) {
  if (shape.grid.x == 0 || shape.grid.y == 0 || shape.grid.z == 0) return;
  CudaDevice& device = *context.cuda;
  constexpr size_t kWithoutAsking = 48 * 1024;
  if (shape.shared_bytes > kWithoutAsking) {
    device.note(cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel), cudaFuncAttributeMaxDynamicSharedMemorySize,
                                     static_cast<int>(shape.shared_bytes)),
                what);
  }
  cudaLaunchConfig_t config{};
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
