// Ranges of the options that a caller gives.
#pragma once

#include <cstdint>

#include "base/error.h"

namespace blockdraft {

inline constexpr int64_t kMaxThreads = 1024;
inline constexpr int64_t kMaxSequences = 1024;
inline constexpr int64_t kMaxPositions = int64_t{1} << 24;  // of a drafter alone

// invalid_argument, naming the option, what it is and its range.
inline Status check_option(const char* option, int64_t value, int64_t min, int64_t max) {
  if (value >= min && value <= max) return {};
  return make_error(Code::invalid_argument, "option {} is {}, expected {} to {}", option, value, min, max);
}

// Comparisons with NaN are false, so NaN is out of range.
inline Status check_confidence_threshold(float threshold) {
  if (threshold >= 0.0f && threshold <= 1.0f) return {};
  return make_error(Code::invalid_argument, "option confidence_threshold is {}, expected 0 to 1", threshold);
}

}  // namespace blockdraft
