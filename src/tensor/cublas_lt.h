// Products of matrices by cuBLASLt, which is opened while the program runs: where there is none, all else runs. Defined
// in builds with CUDA only (base/has_cuda.h); this header needs no toolkit.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "blockdraft/result.h"

namespace blockdraft {

class CudaDevice;

// Used by one thread at a time. The same product has the same bits in every run on a card with the same library: the
// algorithm is a function of the shape, and parts of a sum are added in a fixed order.
class CublasLt {
 public:
  static constexpr size_t kWorkspaceBytes = size_t{32} << 20;
  static constexpr size_t kAlignment = 16;  // of all matrices and their rows, in bytes

  struct Shape {
    int64_t rows = 0;
    int64_t out_features = 0;
    int64_t in_features = 0;
    int64_t x_stride = 0;  // elements between rows
    int64_t out_stride = 0;
    bool accumulate = false;
    auto operator<=>(const Shape&) const = default;
  };
  // out[r, n] = scale * sum_k x[r, k] * weight[n, k]   (+ out[r, n] if accumulate), sums in float32.
  struct Product {
    Shape shape;
    const void* x = nullptr;       // [rows, in_features] BF16
    const void* weight = nullptr;  // [out_features, in_features] BF16, without gaps
    float* out = nullptr;          // [rows, out_features]
    float scale = 1.0f;
  };

  // Borrows the device. Errors: not_found (no library, or one of another version, with its name and what the loader
  // says), unsupported (it does not work with the card).
  static Result<std::shared_ptr<CublasLt>> open(CudaDevice& device);
  ~CublasLt();
  CublasLt(const CublasLt&) = delete;
  CublasLt& operator=(const CublasLt&) = delete;

  // Queues the product. `workspace` has kWorkspaceBytes, aligned to 256 bytes, and is free again behind it on the
  // stream. The library chooses the algorithm of a shape when it is first seen, even while the device skips.
  // Failures are errors of the next CudaDevice::synchronize().
  void multiply(const Product& product, void* workspace);

 private:
  struct State;
  explicit CublasLt(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

}  // namespace blockdraft
