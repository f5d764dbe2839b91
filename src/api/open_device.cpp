#include "api/open_device.h"

#include "base/error.h"
#include "tensor/open_device.h"

namespace blockdraft {

Result<std::shared_ptr<CudaDevice>> open_device(Device device) {
  if (device.kind == Device::Kind::cpu) return std::shared_ptr<CudaDevice>();
  auto opened = open_cuda_device(device.index);
  if (opened) return opened;
  // Whatever the code was: not_found is about files here.
  return make_error(Code::unsupported, "option device: {}", opened.error().message);
}

}  // namespace blockdraft
