// How often each draft of a block was accepted of late. Pure arithmetic.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace blockdraft {

// Counts of drafts that were reached (all before them accepted) and accepted, by their place in the block. Old cycles
// fade: by `fade` whenever the draft is reached again, by `idle_fade` in cycles that do not reach it.
class AcceptanceCounts {
 public:
  struct Fading {
    double fade = 1.0;  // 0 to 1
    double idle_fade = 1.0;
  };
  AcceptanceCounts() = default;
  AcceptanceCounts(int32_t max_width, Fading fading)
      : fading_(fading), reached_(static_cast<size_t>(max_width)), accepted_(static_cast<size_t>(max_width)) {}

  // A cycle that drafted `width` tokens, of which the first `accepted` were kept. width 0: none was drafted.
  void observe(int32_t width, int32_t accepted);

  // The chance of draft `index` if those before it are accepted: what was counted, and `prior` with the weight of
  // `prior_weight` cycles (above 0).
  double chance(int32_t index, double prior, double prior_weight) const;

 private:
  Fading fading_;
  std::vector<double> reached_, accepted_;
};

}  // namespace blockdraft
