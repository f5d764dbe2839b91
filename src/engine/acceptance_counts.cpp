#include "engine/acceptance_counts.h"

#include <algorithm>

namespace blockdraft {

void AcceptanceCounts::observe(int32_t width, int32_t accepted) {
  const auto reached = static_cast<size_t>(std::min(width, accepted + 1));
  for (size_t i = 0; i < reached_.size(); ++i) {
    const double fade = i < reached ? fading_.fade : fading_.idle_fade;
    reached_[i] *= fade;
    accepted_[i] *= fade;
    if (i < reached) ++reached_[i];
    if (i < static_cast<size_t>(accepted)) ++accepted_[i];
  }
}

double AcceptanceCounts::chance(int32_t index, double prior, double prior_weight) const {
  const auto i = static_cast<size_t>(index);
  return (accepted_[i] + prior * prior_weight) / (reached_[i] + prior_weight);
}

}  // namespace blockdraft
