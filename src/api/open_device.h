// The device of the public headers, opened.
#pragma once

#include <memory>

#include "blockdraft/device.h"
#include "blockdraft/result.h"
#include "tensor/cuda_device.h"

namespace blockdraft {

// Null for the CPU. Errors: unsupported, naming the option, what was asked for and what was found.
Result<std::shared_ptr<CudaDevice>> open_device(Device device);

}  // namespace blockdraft
