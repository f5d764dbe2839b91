#include "fill.h"
#include "ops/cuda/launch.h"

namespace blockdraft::bench {

namespace {

__device__ uint32_t mixed(uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ull;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebull;
  return static_cast<uint32_t>(value ^ (value >> 31));
}

__global__ void fill_kernel(uint32_t* words, int64_t count, uint64_t seed, uint32_t keep, uint32_t set) {
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    words[i] = (mixed(seed + static_cast<uint64_t>(i)) & keep) | set;
  }
}

__global__ void fill_uniform_kernel(float* values, int64_t count, uint64_t seed) {
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    values[i] = static_cast<float>(mixed(seed + static_cast<uint64_t>(i))) * 0x1p-31f - 1.0f;
  }
}

__global__ void read_kernel(const uint4* words, int64_t count, uint32_t* sink) {
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  uint32_t sum = 0;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += 8 * step) {
    uint4 v[8];
#pragma unroll
    for (int j = 0; j < 8; ++j) v[j] = i + j * step < count ? __ldcs(words + i + j * step) : uint4{};
#pragma unroll
    for (int j = 0; j < 8; ++j) sum += v[j].x ^ v[j].y ^ v[j].z ^ v[j].w;
  }
  if (sum == 0x12345678u) *sink = sum;
}

__global__ void compare_kernel(const uint32_t* a, const uint32_t* b, int64_t count, int32_t* differing) {
  const int64_t step = int64_t{gridDim.x} * blockDim.x;
  int32_t found = 0;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) found += a[i] != b[i];
  if (found != 0) atomicAdd(differing, found);
}

constexpr unsigned kBlocks = 1056;
constexpr unsigned kThreads = 256;

}  // namespace

void fill_codes(Context& context, void* memory, size_t size_bytes, uint64_t seed, uint32_t keep, uint32_t set) {
  cu::launch(context, "fill", {kBlocks, kThreads}, fill_kernel, static_cast<uint32_t*>(memory),
             static_cast<int64_t>(size_bytes / 4), seed, keep, set);
}

void fill_uniform(Context& context, float* values, int64_t count, uint64_t seed) {
  cu::launch(context, "fill", {kBlocks, kThreads}, fill_uniform_kernel, values, count, seed);
}

void read_all(Context& context, const void* memory, size_t size_bytes, uint32_t* sink) {
  cu::launch(context, "read", {kBlocks, kThreads}, read_kernel, static_cast<const uint4*>(memory),
             static_cast<int64_t>(size_bytes / 16), sink);
}

void count_differing(Context& context, const void* a, const void* b, size_t size_bytes, int32_t* differing) {
  cu::launch(context, "compare", {kBlocks, kThreads}, compare_kernel, static_cast<const uint32_t*>(a),
             static_cast<const uint32_t*>(b), static_cast<int64_t>(size_bytes / 4), differing);
}

}  // namespace blockdraft::bench
