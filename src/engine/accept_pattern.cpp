#include "engine/accept_pattern.h"

#include <algorithm>

#include "base/noise.h"

namespace blockdraft {
namespace {

constexpr uint64_t kSeed = 0x5EED;

}  // namespace

int32_t AcceptPattern::accepted(size_t text, int32_t position, int32_t width) const {
  const int32_t most = std::min(width, static_cast<int32_t>(chances_.size()));
  for (int32_t i = 0; i < most; ++i) {
    const NoiseKey key{.seed = kSeed,
                       .choice = static_cast<uint32_t>(text),
                       .position = position + i,
                       .purpose = NoisePurpose::accept};
    if (uniform_noise(key) >= static_cast<double>(chances_[static_cast<size_t>(i)])) return i;
  }
  return most;
}

}  // namespace blockdraft
