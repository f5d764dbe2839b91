// Times of work on a card's stream, as replays of a graph.
#pragma once

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <utility>
#include <vector>

#include <cuda_runtime_api.h>

#include "tensor/context.h"
#include "tensor/cuda_device.h"

namespace blockdraft::bench {

inline void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
  std::exit(1);
}

// Card 0, or the end of the program.
inline std::unique_ptr<CudaDevice> open_card() {
  auto device = CudaDevice::open(0);
  if (device) return *std::move(device);
  std::fprintf(stderr, "%s\n", device.error().message.c_str());
  std::exit(1);
}

inline void finish(Context& context) {
  const Status status = context.cuda->synchronize();
  if (status) return;
  std::fprintf(stderr, "%s\n", status.error().message.c_str());
  std::exit(1);
}

class Graph {
 public:
  template <class Work>
  Graph(Context& context, Work work) : stream_(context.cuda->stream()) {
    finish(context);
    check(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), "capture");
    work();
    check(cudaStreamEndCapture(stream_, &graph_), "capture");
    check(cudaGraphInstantiate(&executable_, graph_, 0), "instantiate");
    finish(context);
  }
  ~Graph() {
    cudaGraphExecDestroy(executable_);
    cudaGraphDestroy(graph_);
  }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  void replay() { check(cudaGraphLaunch(executable_, stream_), "replay"); }

 private:
  cudaStream_t stream_;
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t executable_ = nullptr;
};

// Microseconds of a replay: the median.
template <class Work>
double microseconds(Context& context, int replays, Work work) {
  Graph graph(context, work);
  cudaEvent_t begin, end;
  check(cudaEventCreate(&begin), "event");
  check(cudaEventCreate(&end), "event");
  graph.replay();
  graph.replay();
  std::vector<float> times;
  for (int i = 0; i < replays; ++i) {
    check(cudaEventRecord(begin, context.cuda->stream()), "event");
    graph.replay();
    check(cudaEventRecord(end, context.cuda->stream()), "event");
    finish(context);
    float milliseconds = 0.0f;
    check(cudaEventElapsedTime(&milliseconds, begin, end), "event");
    times.push_back(milliseconds);
  }
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  std::ranges::nth_element(times, times.begin() + replays / 2);
  return times[static_cast<size_t>(replays / 2)] * 1e3;
}

}  // namespace blockdraft::bench
