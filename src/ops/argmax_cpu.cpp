#include <algorithm>
#include <array>

#include "ops/argmax.h"
#include "ops/cpu/best.h"

namespace blockdraft::cpu {

namespace {

// A row is split into at most kRanges ranges of at least kMinRange choices, kRowsAtOnce rows at a time, so that the
// partial results fit on the stack.
constexpr int64_t kRanges = 32;
constexpr int64_t kMinRange = 2048;
constexpr int64_t kRowsAtOnce = 16;

}  // namespace

void argmax(Context& context, int32_t* ids, ConstTensorView logits, int64_t num_choices) {
  const int64_t num_ranges = std::clamp<int64_t>(num_choices / kMinRange, 1, kRanges);
  const int64_t range = (num_choices + num_ranges - 1) / num_ranges;
  std::array<Best, kRowsAtOnce * kRanges> parts;
  for (int64_t first_row = 0; first_row < logits.dim(0); first_row += kRowsAtOnce) {
    const int64_t rows = std::min(kRowsAtOnce, logits.dim(0) - first_row);
    context.threads->parallel_for(rows * num_ranges, [&](int64_t task, int) {
      const int64_t first = task % num_ranges * range;
      const int64_t last = std::min(num_choices, first + range);
      parts[static_cast<size_t>(task)] = largest_with_index(logits.row(first_row + task / num_ranges), first, last);
    });
    for (int64_t r = 0; r < rows; ++r) ids[first_row + r] = merge(parts.data() + r * num_ranges, num_ranges, 1);
  }
}

}  // namespace blockdraft::cpu
