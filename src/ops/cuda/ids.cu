#include "ops/cuda/launch.h"
#include "ops/cuda/overlap.cuh"
#include "ops/ids.h"

namespace blockdraft::cu {

namespace {

constexpr int kThreads = 128;

__global__ void gather_ids_kernel(int32_t* out, const int32_t* ids, const int32_t* index, int64_t count) {
  let_successor_begin();
  wait_for_predecessor();
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= count || index[i] < 0) return;
  out[i] = ids[index[i]];
}

__global__ void map_ids_kernel(int32_t* ids, const int32_t* table, int32_t* newest, int64_t count) {
  let_successor_begin();
  wait_for_predecessor();
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= count || ids[i] < 0) return;
  if (table != nullptr) ids[i] = table[ids[i]];
  if (newest != nullptr) newest[i] = ids[i];
}

}  // namespace

void gather_ids(Context& context, int32_t* out, const int32_t* ids, const int32_t* index, int64_t count) {
  launch(context, "gather_ids", {.grid = blocks_for(count, kThreads), .block = kThreads, .overlaps = true},
         gather_ids_kernel, out, ids, index, count);
}

void map_ids(Context& context, int32_t* ids, const int32_t* table, int32_t* newest, int64_t count) {
  launch(context, "map_ids", {.grid = blocks_for(count, kThreads), .block = kThreads, .overlaps = true}, map_ids_kernel,
         ids, table, newest, count);
}

}  // namespace blockdraft::cu
