#include <algorithm>
#include <array>
#include <limits>

#include "ops/argmax.h"
#include "ops/cpu/lanes.h"

namespace blockdraft::cpu {

namespace {

// A row is split into at most kRanges ranges of at least kMinRange choices, kRowsAtOnce rows at a time, so that the
// partial results fit on the stack.
constexpr int64_t kRanges = 32;
constexpr int64_t kMinRange = 2048;
constexpr int64_t kRowsAtOnce = 16;

struct Best {
  float value = -std::numeric_limits<float>::infinity();
  int64_t index = 0;
  bool has_nan = false;
};

using IntVec4 = int32_t __attribute__((vector_size(16)));

// The largest value, and whether any is NaN. The order does not matter to the result.
Best largest(const float* values, int64_t count) {
  Best best;
  Vec4 top = broadcast4(best.value);
  IntVec4 nan{};
  int64_t i = 0;
  for (; i + 4 <= count; i += 4) {
    const Vec4 next = load4(values + i);
    nan |= next != next;
    top = next > top ? next : top;
  }
  for (int lane = 0; lane < 4; ++lane) {
    best.value = std::max(best.value, top[lane]);
    best.has_nan |= nan[lane] != 0;
  }
  for (; i < count; ++i) {
    best.value = std::max(best.value, values[i]);
    best.has_nan |= values[i] != values[i];
  }
  return best;
}

Best largest_with_index(const float* values, int64_t first, int64_t last) {
  Best best = largest(values + first, last - first);
  if (best.has_nan) return best;
  best.index = std::find(values + first, values + last, best.value) - values;
  return best;
}

int32_t merge(const Best* parts, int64_t count) {
  Best best = parts[0];
  for (int64_t i = 1; i < count; ++i) {
    best.has_nan |= parts[i].has_nan;
    if (parts[i].value > best.value) {
      best.value = parts[i].value;
      best.index = parts[i].index;
    }
  }
  return best.has_nan ? kNotANumber : static_cast<int32_t>(best.index);
}

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
    for (int64_t r = 0; r < rows; ++r) ids[first_row + r] = merge(parts.data() + r * num_ranges, num_ranges);
  }
}

}  // namespace blockdraft::cpu
