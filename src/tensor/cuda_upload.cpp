#include "tensor/cuda_upload.h"

#include <algorithm>
#include <cstring>

#include <cuda_runtime_api.h>

#include "base/error.h"

namespace blockdraft {

Result<CudaUpload> CudaUpload::create(CudaDevice& device, ThreadPool* threads) {
  CudaUpload upload(device, threads);
  BLOCKDRAFT_ASSIGN(upload.ring_, Buffer::allocate_pinned(device, kPieces * kPieceBytes, "weights on their way"));
  for (CUevent_st*& event : upload.is_free_) {
    device.note(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "creating an event");
  }
  BLOCKDRAFT_TRY(device.synchronize());
  return upload;
}

CudaUpload::~CudaUpload() {
  if (ring_.size_bytes() == 0) return;
  device_->wait();  // copies out of the ring
  for (CUevent_st* event : is_free_) cudaEventDestroy(event);
}

void CudaUpload::copy(void* device_memory, const std::byte* data, size_t size_bytes) {
  auto* to = static_cast<std::byte*>(device_memory);
  while (size_bytes > 0) {
    const size_t part = std::min(size_bytes, kPieceBytes);
    std::byte* piece = static_cast<std::byte*>(ring_.data()) + next_ * kPieceBytes;
    CUevent_st* const event = is_free_[next_];
    device_->note(cudaEventSynchronize(event), "weights on their way");
    fill(piece, data, part);
    device_->copy_to_device(to, piece, part, "weights on their way");
    device_->note(cudaEventRecord(event, device_->stream()), "weights on their way");
    next_ = (next_ + 1) % kPieces;
    to += part;
    data += part;
    size_bytes -= part;
  }
}

void CudaUpload::fill(std::byte* piece, const std::byte* data, size_t size_bytes) const {
  constexpr size_t kTask = size_t{256} << 10;
  const auto copy_task = [&](int64_t task) {
    const size_t first = static_cast<size_t>(task) * kTask;
    std::memcpy(piece + first, data + first, std::min(kTask, size_bytes - first));
  };
  const auto tasks = static_cast<int64_t>((size_bytes + kTask - 1) / kTask);
  if (threads_ != nullptr && tasks > 1) {
    threads_->parallel_for(tasks, [&](int64_t task, int) { copy_task(task); });
  } else {
    for (int64_t task = 0; task < tasks; ++task) copy_task(task);
  }
}

}  // namespace blockdraft
