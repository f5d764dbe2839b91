#include "api/open_device.h"
#include "base/error.h"
#include "base/has_cuda.h"
#include "blockdraft/device.h"
#include "ops/cuda/read_bandwidth.h"

namespace blockdraft {

Result<ReadBandwidth> measure_read_bandwidth(Device device) {
  if (device.kind == Device::Kind::cpu) {
    return make_error(Code::invalid_argument, "read bandwidth: the device is cpu, expected a card");
  }
  BLOCKDRAFT_ASSIGN(const std::shared_ptr<CudaDevice> card, open_device(device));
  if constexpr (kHasCuda) {
    BLOCKDRAFT_ASSIGN(const cu::MemoryRead read, cu::read_bandwidth(*card));
    return ReadBandwidth{read.bytes_per_s, read.buffer_bytes};
  } else {
    return make_error(Code::unsupported, "{}: this build has no CUDA backend", name_of(device));
  }
}

}  // namespace blockdraft
