// The largest of many values, as argmax.h defines it: the lowest index on ties, and whether one is NaN.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "ops/argmax.h"
#include "ops/cpu/lanes.h"

namespace blockdraft::cpu {

struct Best {
  float value = -std::numeric_limits<float>::infinity();
  int64_t index = 0;
  bool has_nan = false;
};

using IntVec4 = int32_t __attribute__((vector_size(16)));

// The largest value, and whether any is NaN. The order does not matter to the result.
inline Best largest(const float* values, int64_t count) {
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

// Of values[first, last), not empty.
inline Best largest_with_index(const float* values, int64_t first, int64_t last) {
  Best best = largest(values + first, last - first);
  if (best.has_nan) return best;
  best.index = std::find(values + first, values + last, best.value) - values;
  return best;
}

// into = the better one of into and next, whose indices are higher.
inline void take(Best& into, const Best& next) {
  into.has_nan |= next.has_nan;
  if (next.value > into.value) {
    into.value = next.value;
    into.index = next.index;
  }
}

// Of parts in ascending order of their indices.
inline int32_t merge(const Best* parts, int64_t count, int64_t stride) {
  Best best = parts[0];
  for (int64_t i = 1; i < count; ++i) take(best, parts[i * stride]);
  return best.has_nan ? kNotANumber : static_cast<int32_t>(best.index);
}

}  // namespace blockdraft::cpu
