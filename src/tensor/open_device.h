// A card by its number, in builds with and without CUDA.
#pragma once

#include <cstdint>
#include <memory>

#include "blockdraft/result.h"
#include "tensor/cuda_device.h"

namespace blockdraft {

// Errors: unsupported, if this build has no CUDA backend; those of CudaDevice::open.
Result<std::shared_ptr<CudaDevice>> open_cuda_device(int32_t index);

}  // namespace blockdraft
