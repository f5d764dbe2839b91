#include "engine/width_policy.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "engine/tap_backlog.h"

namespace blockdraft {
namespace {

// A sequence knows its newest 30 cycles or so, all sequences together some hundreds. What a sequence has seen fades
// while it does not draft, so that it comes back to what the others see.
constexpr AcceptanceCounts::Fading kOwnFading{.fade = 0.97, .idle_fade = 0.995};
constexpr AcceptanceCounts::Fading kSharedFading{.fade = 0.998, .idle_fade = 1.0};
constexpr double kSharedWeight = 12;  // in cycles, against a sequence's own
// Before anything is known: optimistic, so that the first cycles draft and find out.
constexpr double kFirstChance = 0.7;
constexpr double kFirstWeight = 4;

constexpr double kGainToDraft = 1.05;   // against plain decoding
constexpr double kGainToChange = 1.02;  // from one number of drafts to another
constexpr double kGainToStop = 1.005;

constexpr double kLeastProbeCost = 0.02;  // of a cycle's time, even where a try promises to cost nothing
constexpr double kMostSavedCycles = 16;

}  // namespace

WidthPolicy::WidthPolicy(int32_t max_sequences, int32_t max_width, CycleCosts costs)
    : max_width_(max_width), costs_(std::move(costs)), shared_(max_width, kSharedFading) {
  const size_t most = static_cast<size_t>(max_sequences) * static_cast<size_t>(max_width);
  gains_.reserve(most);
  options_.reserve(most + 1);
}

AdaptiveWidth WidthPolicy::begin() const { return {AcceptanceCounts(max_width_, kOwnFading)}; }

void WidthPolicy::observe(AdaptiveWidth& sequence, int32_t width, int32_t accepted) {
  sequence.counts.observe(width, accepted);
  shared_.observe(width, accepted);
}

// Of a draft of which nothing is known yet: what the one before it has.
double WidthPolicy::chance(const AdaptiveWidth* sequence, int32_t index, double before) const {
  const double shared = shared_.chance(index, before, kFirstWeight);
  return sequence == nullptr ? shared : sequence->counts.chance(index, shared, kSharedWeight);
}

void WidthPolicy::collect_gains(std::span<const WidthSeat> seats) {
  gains_.clear();
  for (size_t s = 0; s < seats.size(); ++s) {
    if (seats[s].adaptive == nullptr) continue;
    double tokens = 1;
    double last_chance = kFirstChance;
    for (int32_t i = 0; i < seats[s].most; ++i) {
      last_chance = chance(seats[s].adaptive, i, last_chance);
      tokens *= last_chance;
      gains_.push_back({tokens, static_cast<uint32_t>(s), i});
    }
  }
  // Of equal ones the earlier draft first, so that a block has no holes.
  std::ranges::sort(gains_, [](const Gain& a, const Gain& b) {
    if (a.tokens != b.tokens) return a.tokens > b.tokens;
    return std::pair(a.index, a.seat) < std::pair(b.index, b.seat);
  });
}

void WidthPolicy::weigh_options(std::span<const WidthSeat> seats) {
  CycleWork work;
  double tokens = 0;
  for (const WidthSeat& seat : seats) {
    ++tokens;
    const int32_t fixed = seat.adaptive == nullptr ? seat.most : 0;
    work.drafts += fixed;
    work.verify_rows += 1 + fixed;
  }
  options_.clear();
  for (size_t drafts = 0; drafts <= gains_.size(); ++drafts) {
    if (drafts > 0) {
      tokens += gains_[drafts - 1].tokens;
      ++work.drafts;
      ++work.verify_rows;
    }
    // The drafter takes in what was committed: at once where it drafts, many positions in one pass where it does not.
    double context_us = 0;
    if (work.drafts > 0) {
      context_us = costs_.context_us(static_cast<int32_t>(std::lround(tokens)));
    } else {
      context_us = tokens * costs_.context_us(TapBacklog::kRows) / TapBacklog::kRows;
    }
    options_.push_back({tokens, context_us + costs_.us(work)});
  }
}

size_t WidthPolicy::best_option(size_t first) const {
  size_t best = first;
  for (size_t drafts = first + 1; drafts < options_.size(); ++drafts) {
    if (options_[drafts].rate() > options_[best].rate()) best = drafts;
  }
  return best;
}

size_t WidthPolicy::steady_option(size_t adaptive_seats) const {
  const auto drafts = static_cast<size_t>(std::lround(steady_width_ * static_cast<double>(adaptive_seats)));
  return std::min(drafts, options_.size() - 1);
}

size_t WidthPolicy::pick(size_t adaptive_seats) {
  const size_t best = best_option(0);
  size_t chosen = best;
  if (steady_width_ >= 0) {
    const size_t steady = steady_option(adaptive_seats);
    const double gain = best == 0 ? kGainToStop : steady == 0 ? kGainToDraft : kGainToChange;
    if (options_[best].rate() < gain * options_[steady].rate()) chosen = steady;
  }
  // Where the end of a text is near, fewer drafts say nothing about what was best.
  const bool is_cut = options_.size() <= adaptive_seats * static_cast<size_t>(max_width_);
  if (!is_cut) steady_width_ = static_cast<double>(chosen) / static_cast<double>(adaptive_seats);
  return chosen;
}

// In turn a draft more for each sequence, plain decoding, and a draft less; from plain decoding the best way to draft.
size_t WidthPolicy::probe(size_t chosen, size_t adaptive_seats, std::span<const WidthSeat> seats) {
  const Option& usual = options_[chosen];
  saved_us_ = std::min(saved_us_ + kProbeShare * usual.us, kMostSavedCycles * usual.us);
  const size_t most = options_.size() - 1;
  if (most == 0) return chosen;
  size_t tried = 0;
  if (chosen == 0) {
    tried = best_option(1);
  } else if (num_probes_ % 3 == 0) {
    tried = std::min(chosen + adaptive_seats, most);
  } else if (num_probes_ % 3 == 2) {
    tried = chosen - std::min(chosen, adaptive_seats);
  }
  if (tried == chosen) {
    ++num_probes_;
    return chosen;
  }
  double us = options_[tried].us;
  if (chosen == 0) {
    for (const WidthSeat& seat : seats) us += costs_.context_us(seat.backlog);
  }
  const double cost_us = std::max(us - options_[tried].tokens / usual.rate(), kLeastProbeCost * usual.us);
  if (saved_us_ < cost_us) return chosen;
  saved_us_ -= cost_us;
  ++num_probes_;
  return tried;
}

void WidthPolicy::choose(std::span<const WidthSeat> seats, std::span<int32_t> widths) {
  CHECK(seats.size() == widths.size());
  size_t adaptive_seats = 0;
  for (size_t s = 0; s < seats.size(); ++s) {
    widths[s] = seats[s].adaptive == nullptr ? seats[s].most : 0;
    if (seats[s].adaptive != nullptr) ++adaptive_seats;
  }
  if (adaptive_seats == 0) return;
  collect_gains(seats);
  weigh_options(seats);
  const size_t drafts = probe(pick(adaptive_seats), adaptive_seats, seats);
  for (size_t i = 0; i < drafts; ++i) ++widths[gains_[i].seat];
}

}  // namespace blockdraft
