#include <algorithm>

#include "ops/cpu/decode.h"
#include "ops/cpu/lanes.h"
#include "ops/cpu/linear_slice.h"

// A weight is decoded once for kRowsOfX rows of x, a few of its rows and kDepth of its columns at a time, into a block
// on the stack that stays in the first-level cache. The partial sums of the block's rows wait in memory between one
// stretch of columns and the next, so no order changes. With more rows of x, the same weight rows come again out of the
// cache: memory is read once.

namespace blockdraft::cpu {

namespace {

constexpr int64_t kFeatures = 4;  // output features decoded together
constexpr int64_t kRowsOfX = 32;
constexpr int64_t kDepth = 512;
static_assert(kDepth % kLanes == 0 && kDepth % kScaleBlock == 0);

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

}  // namespace

void multiply_portable(const LinearTask& task, const Slice& slice) {
  const LinearArgs& args = task.args;
  for (int64_t n = 0; n < slice.count; n += kFeatures) {
    const Slice part{slice.weight, slice.first + n, std::min(kFeatures, slice.count - n), slice.column + n};
    for (int64_t r = 0; r < args.x.dim(0); r += kRowsOfX) {
      multiply_block(args, part, r, std::min(kRowsOfX, args.x.dim(0) - r));
    }
  }
}

}  // namespace blockdraft::cpu
