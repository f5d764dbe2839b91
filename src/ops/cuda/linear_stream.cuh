// The stream kernel: products at the speed of memory for up to 64 rows of x.
//
// One block a multiprocessor, in clusters that share the columns: 2 blocks for up to 32 rows, 4 beyond, so that a math
// warp can keep its columns of x in registers. One or two warps copy weight rows into a ring in shared memory through
// the copy engine, eight multiply, one or two add up and write. The copies of the first rounds do not wait for the
// kernels before this one: weights do not depend on them.
#pragma once

#include <algorithm>
#include <atomic>

#include <cuda_runtime.h>

#include "ops/cuda/linear_formats.cuh"
#include "ops/cuda/linear_stream_copy.cuh"
#include "ops/cuda/linear_stream_finish.cuh"
#include "ops/cuda/linear_stream_layout.cuh"
#include "ops/cuda/linear_stream_math.cuh"
#include "ops/cuda/ptx.cuh"
#include "tensor/cuda_device.h"

namespace blockdraft::cu {

inline constexpr uint32_t kSharedBytes = 227 * 1024;  // all that a block may have
inline constexpr int kMaxDevices = 64;

template <class Shape>
__device__ __forceinline__ void init_ring(const SharedAddresses<Shape>& shared, int slots) {
  for (int i = 0; i < slots; ++i) {
    barrier_init(shared.full(i), Shape::kCopyWarps);
    barrier_init(shared.empty(i), kMathWarps);
  }
  fence_copy_engine();
}

template <class Shape>
__device__ __forceinline__ void init_sums(const SharedAddresses<Shape>& shared) {
  for (int i = 0; i < Shape::kBuffers; ++i) {
    barrier_init(shared.partial_full(i), kMathWarps);
    barrier_init(shared.partial_empty(i), Shape::kFinishWarps);
  }
  for (int i = 0; i < 2; ++i) barrier_init(shared.received_full(i), Shape::kFinishWarps);
  fence_barrier_init();
  for (int i = 0; i < 2 * Shape::kFinishWarps; ++i) {
    barrier_arrive_expecting(shared.received_full(i % 2), Shape::kReceivedBytes);
  }
}

template <class Format, int kRanks, int kRowTiles, bool kXIsBf16>
__global__ void __launch_bounds__(StreamShape<kRanks, kRowTiles, Format::kCopyWarps>::kThreads, 1)
    linear_stream_kernel(const __grid_constant__ StreamParams p) {
#if __CUDA_ARCH__ >= 900
  using Shape = StreamShape<kRanks, kRowTiles, Format::kCopyWarps>;
  extern __shared__ __align__(128) unsigned char memory[];
  const SharedAddresses<Shape> shared{kept(shared_address(memory))};
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int rank = static_cast<int>(blockIdx.x) % kRanks;
  const int cluster = static_cast<int>(blockIdx.x) / kRanks;
  const int clusters = static_cast<int>(gridDim.x) / kRanks;

  let_successor_begin();
  if (warp < kMathWarps) {
    if constexpr (Shape::kMovesRegisters) take_registers<Shape::kMathRegisters>();
    cluster_arrive();
    wait_for_predecessor();
    MathWarp<Format, Shape, kXIsBf16> math(p, shared, rank);
    math.begin(cluster);
    cluster_wait();
    math.run(cluster, clusters);
  } else {
    if constexpr (Shape::kMovesRegisters) give_registers<Shape::kOtherRegisters>();
    if (warp < Shape::kFirstFinishWarp) {
      if (threadIdx.x == Shape::kFirstCopyWarp * 32) init_ring(shared, p.slots);
      barrier(1, Shape::kCopyWarps * 32);
      cluster_arrive();
      CopyWarp<Format, Shape>(p, shared, rank, warp - Shape::kFirstCopyWarp).run(cluster, clusters);
      cluster_wait();
      wait_for_predecessor();
    } else {
      if (threadIdx.x == Shape::kFirstFinishWarp * 32) init_sums(shared);
      __syncwarp();
      cluster_arrive();
      cluster_wait();
      wait_for_predecessor();
      const int finisher = warp - Shape::kFirstFinishWarp;
      if (finisher < Shape::kFinishWarps) FinishWarp<Format, Shape>(p, shared, rank, finisher).run(cluster, clusters);
    }
  }
#endif
}

// How many clusters a card holds at once; 0 where it has no code for this kernel or an earlier kernel failed.
template <class Format, int kRanks, int kRowTiles, bool kXIsBf16>
int clusters_on(int device, cudaLaunchConfig_t config) {
  static std::atomic<int> known[kMaxDevices];  // 0: not yet
  if (device >= kMaxDevices) return 0;
  int count = known[device].load(std::memory_order_relaxed);
  if (count > 0) return count;
  const auto kernel = reinterpret_cast<const void*>(linear_stream_kernel<Format, kRanks, kRowTiles, kXIsBf16>);
  cudaFuncAttributes attributes{};
  // Code that the driver made of PTX for older cards has no body.
  if (cudaFuncGetAttributes(&attributes, kernel) == cudaSuccess && attributes.ptxVersion >= 90 &&
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes) == cudaSuccess) {
    config.gridDim = dim3(kRanks * kBestParts);
    cudaOccupancyMaxActiveClusters(&count, kernel, &config);
  }
  known[device].store(count, std::memory_order_relaxed);
  return count;
}

template <class Format, class Shape>
StreamParams params_of(const StreamCall& call) {
  StreamParams p{};
  p.call = call;
  p.split = split_of(call.weights[0].in_features);
  const bool is_gated = call.output == StreamOutput::silu_mul;
  const int rows_of_tile = is_gated ? kTileRows / 2 : kTileRows;
  for (int w = 0; w < call.num_weights; ++w) {
    const auto tiles = static_cast<int32_t>((call.weights[w].out_features + rows_of_tile - 1) / rows_of_tile);
    p.first_tile[w + 1] = is_gated ? tiles : p.first_tile[w] + tiles;
  }
  const int section_units = (p.split.units + p.split.sections - 1) / p.split.sections;
  const uint32_t row_bytes = (section_units + Shape::kRanks - 1) / Shape::kRanks * Format::kUnitBytes;
  p.row_pitch = row_bytes % 128 == 64 ? row_bytes : row_bytes + 64;
  p.stage_bytes = Format::kStageRows * (p.row_pitch + (Format::kUnitBytes == 64 ? kScalePitch : 0));
  constexpr uint32_t kRingBytes = kSharedBytes - (sizeof(typename Shape::Shared) + 127) / 128 * 128;
  p.slots = std::min(kMaxSlots, static_cast<int>(kRingBytes / p.stage_bytes));
  return p;
}

template <class Format, int kRanks, int kRowTiles, bool kXIsBf16>
void launch_stream_kernel(Context& context, const char* what, const StreamCall& call) {
  using Shape = StreamShape<kRanks, kRowTiles, Format::kCopyWarps>;
  const StreamParams p = params_of<Format, Shape>(call);
  cudaLaunchAttribute attributes[2];
  attributes[0].id = cudaLaunchAttributeClusterDimension;
  attributes[0].val.clusterDim = {kRanks, 1, 1};
  attributes[1].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attributes[1].val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.blockDim = dim3(Shape::kThreads);
  config.dynamicSmemBytes = kSharedBytes;
  config.stream = context.cuda->stream();
  config.attrs = attributes;
  config.numAttrs = 1;
  const int at_once = clusters_on<Format, kRanks, kRowTiles, kXIsBf16>(context.cuda->index(), config);
  if (at_once == 0) return context.cuda->note(cudaErrorInvalidDeviceFunction, what);
  const int clusters = std::min({at_once, kBestParts, p.first_tile[call.num_weights]});
  config.gridDim = dim3(static_cast<unsigned>(kRanks * clusters));
  config.numAttrs = 2;
  context.cuda->note(cudaLaunchKernelEx(&config, linear_stream_kernel<Format, kRanks, kRowTiles, kXIsBf16>, p), what);
}

template <class Format, bool kXIsBf16>
void launch_stream_rows(Context& context, const char* what, const StreamCall& call) {
  if (call.rows <= 16) {
    launch_stream_kernel<Format, 2, 1, kXIsBf16>(context, what, call);
  } else if (call.rows <= 32) {
    launch_stream_kernel<Format, 2, 2, kXIsBf16>(context, what, call);
  } else {
    launch_stream_kernel<Format, 4, 4, kXIsBf16>(context, what, call);
  }
}

template <class Format>
void launch_stream_format(Context& context, const char* what, const StreamCall& call) {
  if (call.x_is_bf16) {
    launch_stream_rows<Format, true>(context, what, call);
  } else {
    launch_stream_rows<Format, false>(context, what, call);
  }
}

}  // namespace blockdraft::cu
