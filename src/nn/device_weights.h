// Weights that were loaded for the CPU, on a card.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "base/error.h"
#include "base/thread_pool.h"
#include "blockdraft/result.h"
#include "tensor/buffer.h"
#include "tensor/tensor_view.h"
#include "tensor/weight_view.h"

namespace blockdraft {

class CudaDevice;
class CudaUpload;

// Owns the card's copies. What several views share is copied once. Builds with CUDA only. Moves only.
class DeviceWeights {
 public:
  DeviceWeights();
  // `what` names the weights in an out-of-memory error. Borrows device and threads until finish().
  static Result<DeviceWeights> create(CudaDevice& device, ThreadPool* threads, const char* what);
  DeviceWeights(DeviceWeights&& other) noexcept;
  DeviceWeights& operator=(DeviceWeights&& other) noexcept;
  ~DeviceWeights();

  // Makes the views those of copies on the card. A view without data stays as it is.  Errors: out_of_memory, naming the
  // weights, the size asked for and what is free.
  Status move(WeightView& weight);
  Status move(ConstTensorView& values);
  template <class T>
  Result<const T*> copy(std::span<const T> values) {
    BLOCKDRAFT_ASSIGN(const void* copied, copy_bytes(values.data(), values.size_bytes()));
    return static_cast<const T*>(copied);
  }
  // Waits until all is there; nothing of the CPU's is needed any more.  Errors: io_error.
  Status finish();

  size_t size_bytes() const { return size_bytes_; }

 private:
  Result<const void*> copy_bytes(const void* data, size_t size_bytes);
  Result<std::byte*> allocate(size_t size_bytes);
  Result<std::byte*> take(size_t size_bytes);

  CudaDevice* device_ = nullptr;
  const char* what_ = "";
  std::vector<Buffer> memory_;
  std::unique_ptr<CudaUpload> upload_;  // ends before the memory that it copies to
  std::byte* shared_ = nullptr;         // the rest of the newest buffer that small copies share
  size_t shared_left_ = 0;
  std::map<const void*, const void*> copies_;
  size_t size_bytes_ = 0;
};

}  // namespace blockdraft
