// Work of a card's stream that was queued once and is repeated. Builds with CUDA only.
#pragma once

#include <utility>

#include "blockdraft/result.h"
#include "tensor/cuda_device.h"

struct CUgraphExec_st;  // what a cudaGraphExec_t points to

namespace blockdraft {

// Moves only. Everything that the work reads beside its launch arguments may have changed when it is repeated.
class CudaGraph {
 public:
  // From here to end() nothing runs: what is queued on the stream becomes the graph.
  static void begin(CudaDevice& device);
  // Errors: io_error, naming the first operation that failed or cannot be in a graph.
  static Result<CudaGraph> end(CudaDevice& device);

  CudaGraph(CudaGraph&& other) noexcept : executable_(std::exchange(other.executable_, nullptr)) {}
  CudaGraph& operator=(CudaGraph&& other) noexcept {
    std::swap(executable_, other.executable_);
    return *this;
  }
  ~CudaGraph();

  void launch(CudaDevice& device) const;

 private:
  explicit CudaGraph(CUgraphExec_st* executable) : executable_(executable) {}

  CUgraphExec_st* executable_ = nullptr;
};

}  // namespace blockdraft
