#include <utility>

#include "ops/cuda/best_key.cuh"
#include "ops/cuda/launch.h"
#include "ops/cuda/overlap.cuh"
#include "ops/cuda/support.h"
#include "ops/top_k.h"

// Choices become keys whose order is the one wanted (best_key.cuh). A block sorts kKeys of them and keeps the k
// largest; what the blocks of a row keep is sorted again, until one block is left.

namespace blockdraft::cu {

namespace {

constexpr int kThreads = 1024;
constexpr int kKeys = 4096;  // of a block, 32 KB
static_assert(2 * kMaxTopK <= kKeys);

// keys[0 .. kKeys) in descending order: a bitonic network.
__device__ void sort_keys(BestKey* keys) {
  for (int size = 2; size <= kKeys; size *= 2) {
    for (int distance = size / 2; distance > 0; distance /= 2) {
      __syncthreads();
      for (int pair = static_cast<int>(threadIdx.x); pair < kKeys / 2; pair += kThreads) {
        const int low = 2 * pair - pair % distance;
        const int high = low + distance;
        const bool descending = (low & size) == 0;
        if ((keys[low] < keys[high]) != descending) continue;
        const BestKey key = keys[low];
        keys[low] = keys[high];
        keys[high] = key;
      }
    }
  }
  __syncthreads();
}

// Where the keys of a row come from in a round, and what its blocks keep: `kept` of [rows, blocks, k].
struct Round {
  const float* logits;        // of the first round, else null
  int64_t stride;             // of logits
  const BestKey* candidates;  // [rows, count] of the others
  int64_t count;
  int64_t per_block;
  BestKey* kept;
  int k;
};

__global__ void round_kernel(Round round) {
  begin_in_chain();
  __shared__ BestKey keys[kKeys];
  const int64_t row = blockIdx.y;
  const int64_t first = blockIdx.x * round.per_block;
  for (int i = static_cast<int>(threadIdx.x); i < kKeys; i += kThreads) {
    const int64_t at = first + i;
    keys[i] = kNoKey;
    if (i >= round.per_block || at >= round.count) continue;
    keys[i] = round.logits != nullptr ? best_key(round.logits[row * round.stride + at], static_cast<uint32_t>(at))
                                      : round.candidates[row * round.count + at];
  }
  sort_keys(keys);
  BestKey* kept = round.kept + (row * gridDim.x + blockIdx.x) * round.k;
  for (int i = static_cast<int>(threadIdx.x); i < round.k; i += kThreads) kept[i] = keys[i];
}

__global__ void hand_out_kernel(int32_t* ids, float* values, int64_t values_stride, const BestKey* kept,
                                const float* logits, int64_t stride, int k) {
  begin_in_chain();
  const int64_t row = blockIdx.x;
  const bool has_nan = kept[row * k] == kNotANumberKey;
  for (int i = static_cast<int>(threadIdx.x); i < k; i += static_cast<int>(blockDim.x)) {
    const BestKey key = kept[row * k + i];
    ids[row * k + i] = has_nan ? -1 : static_cast<int32_t>(index_of(key));
    values[row * values_stride + i] = has_nan ? __int_as_float(0x7fffffff) : logits[row * stride + index_of(key)];
  }
}

// A later round sorts whole lists of k.
int64_t keys_per_block(int64_t k, bool is_first) { return is_first ? kKeys : kKeys / k * k; }

}  // namespace

void top_k(Context& context, int32_t* ids, TensorView values, ConstTensorView logits, int64_t num_choices) {
  const int64_t rows = logits.dim(0);
  const int64_t k = values.dim(1);
  CHECK(k <= kMaxTopK);
  if (rows == 0) return;
  const ArenaScope scope(*context.arena);
  const int64_t most_kept = blocks_for(num_choices, kKeys) * k;
  auto* kept = reinterpret_cast<BestKey*>(context.arena->take_i32(2 * rows * most_kept));
  auto* next = reinterpret_cast<BestKey*>(context.arena->take_i32(2 * rows * most_kept));
  Round round{logits.f32(), logits.row_stride,  nullptr, num_choices, keys_per_block(k, true),
              kept,         static_cast<int>(k)};
  while (true) {
    const unsigned blocks = blocks_for(round.count, round.per_block);
    launch(context, "top_k", in_chain({blocks, static_cast<unsigned>(rows)}, kThreads), round_kernel, round);
    if (blocks == 1) break;
    std::swap(kept, next);
    round = {nullptr, 0, next, blocks * k, keys_per_block(k, false), kept, static_cast<int>(k)};
  }
  launch(context, "top_k", in_chain(static_cast<unsigned>(rows), 128), hand_out_kernel, ids, values.f32(),
         values.row_stride, static_cast<const BestKey*>(kept), logits.f32(), logits.row_stride, static_cast<int>(k));
}

size_t top_k_scratch_bytes(int64_t rows, int64_t k, int64_t num_choices) {
  return 2 * arena_bytes_f32(2 * rows * blocks_for(num_choices, kKeys) * k);
}

}  // namespace blockdraft::cu
