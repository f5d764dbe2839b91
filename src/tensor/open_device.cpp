#include "tensor/open_device.h"

#include <utility>

#include "base/error.h"
#include "base/has_cuda.h"

namespace blockdraft {

Result<std::shared_ptr<CudaDevice>> open_cuda_device(int32_t index) {
  if constexpr (kHasCuda) {
    BLOCKDRAFT_ASSIGN(std::unique_ptr<CudaDevice> device, CudaDevice::open(index));
    return std::shared_ptr<CudaDevice>(std::move(device));
  } else {
    return make_error(Code::unsupported,
                      "cuda:{}: this build has no CUDA backend; it needs the CUDA toolkit and -DBLOCKDRAFT_CUDA=ON",
                      index);
  }
}

}  // namespace blockdraft
