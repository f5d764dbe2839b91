// How many drafts each sequence of a batch is asked for in the next cycle: as many as promise most tokens a second,
// down to none. The output does not depend on it. Pure arithmetic: times and results of cycles are told to it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/acceptance_counts.h"
#include "engine/cycle_costs.h"

namespace blockdraft {

// Of one sequence whose width adapts. Made by WidthPolicy::begin.
struct AdaptiveWidth {
  AcceptanceCounts counts;
};

// One sequence of the cycle to come.
struct WidthSeat {
  const AdaptiveWidth* adaptive = nullptr;  // null: the width is `most`
  int32_t most = 0;                         // drafts that make sense: what was asked for, less where the end is near
  int32_t backlog = 0;                      // positions that the drafter would have to take in first
};

// The expected number of tokens of a sequence with width w is 1 + c1 + c1 c2 + ... + c1 .. cw, where ci is the chance
// of draft i given that those before it were accepted. As the terms only fall, the best way to spend D drafts on a
// batch takes its D largest terms, and what is left to choose is D: the largest of tokens(D) / time(D).
//
// Hysteresis: D changes only for a gain that estimates are good for, and back to plain decoding sooner than away from
// it. Now and then a cycle tries another D, so that chances and costs stay known: every cycle saves up kProbeShare of
// its time, and a try has to be paid for by what was saved.
class WidthPolicy {
 public:
  static constexpr double kProbeShare = 0.0075;

  WidthPolicy(int32_t max_sequences, int32_t max_width, CycleCosts costs);

  AdaptiveWidth begin() const;  // of a new sequence

  // widths: [seats].
  void choose(std::span<const WidthSeat> seats, std::span<int32_t> widths);

  // What became of a cycle; `times` of the whole batch.
  void observe(const CycleWork& work, const CycleTimes& times) { costs_.observe(work, times); }
  // What became of the drafts of a sequence. `width` is what choose() said; drafts that were not verified because the
  // drafter doubts them were not accepted. A width of 0 lets old counts fade.
  void observe(AdaptiveWidth& sequence, int32_t width, int32_t accepted);

  const CycleCosts& costs() const { return costs_; }

 private:
  struct Gain {
    double tokens = 0;  // expected of this draft
    uint32_t seat = 0;
    int32_t index = 0;  // of the draft in its block
  };
  struct Option {  // of one D
    double tokens = 0;
    double us = 0;
    double rate() const { return tokens / us; }
  };
  void collect_gains(std::span<const WidthSeat> seats);
  double chance(const AdaptiveWidth* sequence, int32_t index, double before) const;
  void weigh_options(std::span<const WidthSeat> seats);
  size_t steady_option(size_t adaptive_seats) const;
  size_t pick(size_t adaptive_seats);
  size_t probe(size_t chosen, size_t adaptive_seats, std::span<const WidthSeat> seats);
  size_t best_option(size_t first) const;

  int32_t max_width_;
  CycleCosts costs_;
  AcceptanceCounts shared_;   // over all sequences: what a new one begins with
  double steady_width_ = -1;  // mean of the newest choice that was no try; below 0: none yet
  double saved_us_ = 0;
  uint32_t num_probes_ = 0;

  // Of the cycle in progress.
  std::vector<Gain> gains_;      // the largest first
  std::vector<Option> options_;  // [D]
};

}  // namespace blockdraft
