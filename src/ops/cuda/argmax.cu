#include <algorithm>

#include "ops/argmax.h"
#include "ops/cuda/best_key.cuh"
#include "ops/cuda/launch.h"
#include "ops/cuda/overlap.cuh"

namespace blockdraft::cu {

namespace {

constexpr int kThreads = 256;
constexpr int64_t kMostParts = 64;  // of a row, a block each
constexpr int64_t kMinPart = 2048;  // choices

__global__ void part_kernel(BestKey* parts, const float* logits, int64_t stride, int64_t num_choices) {
  begin_in_chain();
  const float* row = logits + blockIdx.y * stride;
  BestKey key = kNoKey;
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < num_choices; i += int64_t{gridDim.x} * kThreads) {
    key = better(key, best_key(row[i], static_cast<uint32_t>(i)));
  }
  key = best_of_block(key);
  if (threadIdx.x == 0) parts[blockIdx.y * gridDim.x + blockIdx.x] = key;
}

__global__ void merge_kernel(int32_t* ids, const BestKey* parts, int num_parts) {
  begin_in_chain();
  BestKey key = kNoKey;
  for (int i = static_cast<int>(threadIdx.x); i < num_parts; i += 32) {
    key = better(key, parts[int64_t{blockIdx.x} * num_parts + i]);
  }
  key = best_of_warp(key);
  if (threadIdx.x == 0) ids[blockIdx.x] = choice_of(key);
}

}  // namespace

void argmax(Context& context, int32_t* ids, ConstTensorView logits, int64_t num_choices) {
  const int64_t rows = logits.dim(0);
  if (rows == 0) return;
  const ArenaScope scope(*context.arena);
  const int64_t num_parts = std::clamp<int64_t>(num_choices / kMinPart, 1, kMostParts);
  auto* parts = reinterpret_cast<BestKey*>(context.arena->take_i32(2 * rows * num_parts));
  launch(context, "argmax", in_chain({static_cast<unsigned>(num_parts), static_cast<unsigned>(rows)}, kThreads),
         part_kernel, parts, logits.f32(), logits.row_stride, num_choices);
  launch(context, "argmax", in_chain(static_cast<unsigned>(rows), 32), merge_kernel, ids, parts,
         static_cast<int>(num_parts));
}

size_t argmax_scratch_bytes(int64_t rows) { return arena_bytes_f32(2 * rows * kMostParts); }

}  // namespace blockdraft::cu
