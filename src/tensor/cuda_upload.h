// Much memory of the CPU to a card. Builds with CUDA only.
#pragma once

#include <array>
#include <cstddef>

#include "base/thread_pool.h"
#include "blockdraft/result.h"
#include "tensor/buffer.h"
#include "tensor/cuda_device.h"

namespace blockdraft {

// A ring of pinned pieces: while one is on its way to the card, the threads fill the next, so that pages of a file come
// out of the page cache meanwhile. Moves only; borrows device and threads (null: the calling thread alone).
class CudaUpload {
 public:
  // Errors: out_of_memory.
  static Result<CudaUpload> create(CudaDevice& device, ThreadPool* threads);
  CudaUpload(CudaUpload&& other) noexcept = default;
  CudaUpload& operator=(CudaUpload&&) = delete;
  ~CudaUpload();

  // Has read `data` when it returns; the card has it behind the next synchronize().
  void copy(void* device_memory, const std::byte* data, size_t size_bytes);

 private:
  static constexpr size_t kPieceBytes = size_t{16} << 20;
  static constexpr size_t kPieces = 4;
  CudaUpload(CudaDevice& device, ThreadPool* threads) : device_(&device), threads_(threads) {}
  void fill(std::byte* piece, const std::byte* data, size_t size_bytes) const;

  CudaDevice* device_;
  ThreadPool* threads_;
  Buffer ring_;  // [kPieces, kPieceBytes]
  std::array<CUevent_st*, kPieces> is_free_{};
  size_t next_ = 0;
};

}  // namespace blockdraft
