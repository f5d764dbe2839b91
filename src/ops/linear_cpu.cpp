#include <algorithm>
#include <span>

#include "ops/cpu/decode.h"
#include "ops/cpu/lanes.h"
#include "ops/linear.h"

// A weight is decoded once for kRowsOfX rows of x, a few of its rows and kDepth of its columns at a time, into a block
// on the stack that stays in the first-level cache. The partial sums of the block's rows wait in memory between one
// stretch of columns and the next, so no order changes. With more rows of x, the same weight rows come again out of the
// cache: memory is read once.

namespace blockdraft::cpu {

namespace {

constexpr int64_t kLineFeatures = 16;   // output features of a task come in these: a cache line of out
constexpr int64_t kTasksPerThread = 6;  // few, so that threads seldom meet; enough to even out their speeds
constexpr int64_t kFeatures = 4;        // output features decoded together
constexpr int64_t kRowsOfX = 32;
constexpr int64_t kDepth = 512;
static_assert(kDepth % kLanes == 0 && kDepth % kScaleBlock == 0 && kLineFeatures % kFeatures == 0);

// Features [first, first + count) of one weight, whose output begins at column `column`.
struct Slice {
  const WeightView& weight;
  int64_t first;
  int64_t count;
  int64_t column;
};

struct Block {
  alignas(64) float weights[kFeatures][kDepth];
  Lanes sums[kRowsOfX][kFeatures];
};

void decode_block(Block& block, const Slice& slice, int64_t k, int64_t depth) {
  for (int64_t n = 0; n < kFeatures; ++n) {
    // A block with fewer features repeats its last one: the sums are not used, but must not be slow ones.
    const int64_t feature = slice.first + std::min(n, slice.count - 1);
    decode(slice.weight, feature, k, depth, block.weights[n]);
  }
}

void add_block(Block& block, const float* x, int64_t x_stride, int64_t rows, int64_t depth) {
  int64_t r = 0;
  for (; r + 2 <= rows; r += 2) {
    add_products<2, kFeatures>(block.sums[r], kFeatures, x + r * x_stride, x_stride, block.weights[0], kDepth, depth);
  }
  if (r < rows) {
    add_products<1, kFeatures>(block.sums[r], kFeatures, x + r * x_stride, x_stride, block.weights[0], kDepth, depth);
  }
}

float finish(float sum, const Slice& slice, int64_t n) {
  const int64_t feature = slice.first + n;
  if (slice.weight.row_scales != nullptr) sum *= slice.weight.row_scales[feature];
  if (slice.weight.bias != nullptr) sum += slice.weight.bias[feature];
  return sum;
}

// The products of rows [first_row, first_row + rows) of x with the features of a slice, at most kFeatures.
void multiply_block(const LinearArgs& args, const Slice& slice, int64_t first_row, int64_t rows) {
  Block block;
  for (int64_t r = 0; r < rows; ++r) std::fill_n(block.sums[r], kFeatures, Lanes{});
  const int64_t in_features = slice.weight.in_features;
  const int64_t last_k = (in_features - 1) / kDepth * kDepth;
  for (int64_t k = 0; k <= last_k; k += kDepth) {
    const int64_t depth = std::min(kDepth, in_features - k);
    decode_block(block, slice, k, depth);
    add_block(block, args.x.row(first_row) + k, args.x.row_stride, rows, lane_part(depth));
  }
  // The last stretch of columns is still decoded: its end is the tail.
  const int64_t tail = in_features - lane_part(in_features);
  for (int64_t r = 0; r < rows; ++r) {
    const float* x_tail = args.x.row(first_row + r) + in_features - tail;
    float* out = args.out.row(first_row + r) + slice.column;
    for (int64_t n = 0; n < slice.count; ++n) {
      const float* weight_tail = block.weights[n] + (in_features - tail - last_k);
      const float value = finish(add_tail(sum_of(block.sums[r][n]), x_tail, weight_tail, tail), slice, n);
      out[n] = args.accumulate ? out[n] + value : value;
    }
  }
}

void multiply(const LinearArgs& args, const Slice& slice) {
  for (int64_t n = 0; n < slice.count; n += kFeatures) {
    const Slice part{slice.weight, slice.first + n, std::min(kFeatures, slice.count - n), slice.column + n};
    for (int64_t r = 0; r < args.x.dim(0); r += kRowsOfX) {
      multiply_block(args, part, r, std::min(kRowsOfX, args.x.dim(0) - r));
    }
  }
}

// How the features of all weights are dealt out. This decides who computes what, never what comes out.
struct Split {
  std::span<const WeightView> weights;
  int64_t features_per_task;

  int64_t num_tasks(const WeightView& weight) const {
    return (weight.out_features + features_per_task - 1) / features_per_task;
  }
  int64_t num_tasks() const {
    int64_t sum = 0;
    for (const WeightView& weight : weights) sum += num_tasks(weight);
    return sum;
  }
  Slice slice(int64_t task) const {
    int64_t column = 0;
    size_t i = 0;
    for (; task >= num_tasks(weights[i]); ++i) {
      task -= num_tasks(weights[i]);
      column += weights[i].out_features;
    }
    const int64_t first = task * features_per_task;
    return {weights[i], first, std::min(features_per_task, weights[i].out_features - first), column + first};
  }
};

Split split(const LinearArgs& args, int num_threads) {
  const int64_t lines = args.out.dim(1) / (kLineFeatures * kTasksPerThread * num_threads);
  return {args.weights, std::max<int64_t>(1, lines) * kLineFeatures};
}

}  // namespace

void linear(Context& context, const LinearArgs& args) {
  if (args.x.dim(0) == 0) return;
  const Split tasks = split(args, context.threads->num_threads());
  context.threads->parallel_for(tasks.num_tasks(), [&](int64_t task, int) { multiply(args, tasks.slice(task)); });
}

}  // namespace blockdraft::cpu
