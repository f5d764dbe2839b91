#include "ops/cuda/read_bandwidth.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "base/error.h"
#include "base/timer.h"
#include "ops/cuda/launch.h"
#include "tensor/buffer.h"

namespace blockdraft::cu {
namespace {

constexpr size_t kBufferBytes = size_t{2} << 30;
constexpr size_t kTimesCache = 8;  // at most an eighth of a pass can come out of the second-level cache
constexpr size_t kLoadBytes = 16;
constexpr double kTime_s = 0.3;  // a card that was idle takes a part of that to reach its clocks

Result<size_t> buffer_bytes(CudaDevice& device) {
  int cache_bytes = 0;
  device.note(cudaDeviceGetAttribute(&cache_bytes, cudaDevAttrL2CacheSize, device.index()), "asking for the cache");
  const size_t free_bytes = device.memory().free;
  const size_t least = kTimesCache * static_cast<size_t>(cache_bytes);
  const size_t size_bytes = std::min(kBufferBytes, free_bytes / 2) / kLoadBytes * kLoadBytes;
  if (size_bytes >= std::max(least, kLoadBytes)) return size_bytes;
  return make_error(Code::out_of_memory,
                    "card {} ({}): reading is measured in half of the free memory, {} bytes, expected {} or more: {} "
                    "times the second-level cache",
                    device.index(), device.name(), size_bytes, least, kTimesCache);
}

}  // namespace

Result<MemoryRead> read_bandwidth(CudaDevice& device) {
  device.make_current();
  BLOCKDRAFT_ASSIGN(const size_t size_bytes, buffer_bytes(device));
  BLOCKDRAFT_ASSIGN(Buffer buffer, Buffer::allocate_on(device, size_bytes, "memory to read"));
  BLOCKDRAFT_ASSIGN(Buffer sink, Buffer::allocate_on(device, sizeof(uint32_t), "a result of reading"));
  Context context;
  context.cuda = &device;
  double best = std::numeric_limits<double>::max();
  const Timer time;
  for (int pass = 0; pass < 2 || time.elapsed_s() < kTime_s; ++pass) {
    device.mark(0);
    read_memory(context, buffer.data(), size_bytes, static_cast<uint32_t*>(sink.data()));
    device.mark(1);
    BLOCKDRAFT_TRY(device.synchronize());
    // The first one also brings the kernel to the card.
    if (pass > 0) best = std::min(best, static_cast<double>(device.elapsed_us(0, 1)) * 1e-6);
  }
  return MemoryRead{static_cast<double>(size_bytes) / best, static_cast<int64_t>(size_bytes)};
}

}  // namespace blockdraft::cu
