#include "tensor/cuda_graph.h"

#include <cuda_runtime_api.h>

#include "base/error.h"

namespace blockdraft {

void CudaGraph::begin(CudaDevice& device) {
  device.note(cudaStreamBeginCapture(device.stream(), cudaStreamCaptureModeThreadLocal), "capturing a graph");
}

Result<CudaGraph> CudaGraph::end(CudaDevice& device) {
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  device.note(cudaStreamEndCapture(device.stream(), &graph), "capturing a graph");
  if (graph != nullptr) {
    device.note(cudaGraphInstantiate(&executable, graph, 0), "making a graph");
    cudaGraphDestroy(graph);
  }
  CudaGraph result(executable);
  BLOCKDRAFT_TRY(device.synchronize());
  return result;
}

CudaGraph::~CudaGraph() {
  if (executable_ != nullptr) cudaGraphExecDestroy(executable_);
}

void CudaGraph::launch(CudaDevice& device) const {
  if (!device.skips()) device.note(cudaGraphLaunch(executable_, device.stream()), "launching a graph");
}

}  // namespace blockdraft
