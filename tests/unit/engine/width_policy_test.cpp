// The policy against a simulated machine: times by formula, drafts accepted by chance.

#include "engine/width_policy.h"

#include <algorithm>
#include <array>
#include <functional>
#include <random>
#include <span>
#include <vector>

#include <gtest/gtest.h>

namespace blockdraft::test {
namespace {

constexpr int32_t kMaxWidth = 7;

struct Machine {
  double context_us = 5;
  double propose_us = 40, propose_row_us = 5;
  double verify_us = 90, verify_row_us = 10;
  double noise = 0.0;  // each time is up to this part longer

  CycleTimes times(const CycleWork& work) const {
    return {.context_us = work.context_rows > 0 ? context_us + 0.5 * work.context_rows : 0,
            .propose_us = work.drafts > 0 ? propose_us + propose_row_us * work.drafts : 0,
            .verify_us = verify_us + verify_row_us * work.verify_rows};
  }
  double us(const CycleWork& work) const {
    const CycleTimes all = times(work);
    return all.context_us + all.propose_us + all.verify_us;
  }
};

CycleCosts costs_of(const Machine& machine, int32_t max_sequences) {
  CycleCosts costs(64 * max_sequences, kMaxWidth * max_sequences, (kMaxWidth + 1) * max_sequences);
  for (int32_t rows = 1; rows <= (kMaxWidth + 1) * max_sequences; ++rows) {
    const CycleTimes times = machine.times({.context_rows = rows, .drafts = rows, .verify_rows = rows});
    costs.set({.context_rows = rows, .verify_rows = rows}, times);
    if (rows <= kMaxWidth * max_sequences) costs.set({.drafts = rows}, times);
  }
  costs.set({.context_rows = 64}, machine.times({.context_rows = 64}));
  return costs;
}

using Chances = std::array<double, kMaxWidth>;
constexpr Chances kGood = {0.9, 0.9, 0.85, 0.85, 0.8, 0.8, 0.8};
constexpr Chances kPoor = {0.2, 0.2, 0.1, 0.1, 0.1, 0.1, 0.1};

// One text after the other, or several at once.
class Simulation {
 public:
  Simulation(const Machine& machine, int32_t sequences = 1)
      : machine_(machine), policy_(sequences, kMaxWidth, costs_of(machine, sequences)) {
    for (int32_t i = 0; i < sequences; ++i) sequences_.push_back(policy_.begin());
  }

  void new_texts() {
    for (AdaptiveWidth& sequence : sequences_) sequence = policy_.begin();
  }

  // Chances of each sequence.
  void run(int cycles, const std::vector<Chances>& chances) {
    tokens_ = us_ = 0;
    widths_.clear();
    for (int cycle = 0; cycle < cycles; ++cycle) run_cycle(chances);
  }

  double rate() const { return tokens_ / us_; }
  const std::vector<int32_t>& widths() const { return widths_; }  // of the first sequence
  int32_t usual_width() const {
    std::array<int, kMaxWidth + 1> counts{};
    for (const int32_t width : widths_) ++counts[static_cast<size_t>(width)];
    return static_cast<int32_t>(std::ranges::max_element(counts) - counts.begin());
  }
  int changes() const {
    int changes = 0;
    for (size_t i = 1; i < widths_.size(); ++i) changes += widths_[i] != widths_[i - 1] ? 1 : 0;
    return changes;
  }
  const std::vector<int32_t>& newest() const { return newest_; }

 private:
  void run_cycle(const std::vector<Chances>& chances) {
    std::vector<WidthSeat> seats;
    for (const AdaptiveWidth& sequence : sequences_) seats.push_back({.adaptive = &sequence, .most = kMaxWidth});
    newest_.assign(seats.size(), 0);
    policy_.choose(seats, newest_);
    widths_.push_back(newest_[0]);
    CycleWork work{.verify_rows = static_cast<int32_t>(seats.size())};
    for (const int32_t width : newest_) {
      work.drafts += width;
      work.verify_rows += width;
    }
    if (work.drafts > 0) work.context_rows = static_cast<int32_t>(seats.size());
    CycleTimes times = machine_.times(work);
    us_ += machine_.us(work);
    for (double* part : {&times.context_us, &times.propose_us, &times.verify_us})
      *part *= 1 + machine_.noise * uniform();
    policy_.observe(work, times);
    for (size_t s = 0; s < sequences_.size(); ++s) {
      int32_t accepted = 0;
      while (accepted < newest_[s] && uniform() < chances[s][static_cast<size_t>(accepted)]) ++accepted;
      policy_.observe(sequences_[s], newest_[s], accepted);
      tokens_ += accepted + 1;
    }
  }
  double uniform() { return std::uniform_real_distribution<double>()(random_); }

  Machine machine_;
  WidthPolicy policy_;
  std::vector<AdaptiveWidth> sequences_;
  std::mt19937 random_{7};
  double tokens_ = 0, us_ = 0;
  std::vector<int32_t> widths_;
  std::vector<int32_t> newest_;
};

double rate_of_width(const Machine& machine, const Chances& chances, int32_t width) {
  double tokens = 1, term = 1;
  for (int32_t i = 0; i < width; ++i) tokens += term *= chances[static_cast<size_t>(i)];
  const CycleWork work{.context_rows = width > 0 ? 1 : 0, .drafts = width, .verify_rows = width + 1};
  return tokens / machine.us(work);
}

double best_rate(const Machine& machine, const Chances& chances) {
  double best = 0;
  for (int32_t width = 0; width <= kMaxWidth; ++width) best = std::max(best, rate_of_width(machine, chances, width));
  return best;
}

TEST(WidthPolicy, FindsTheBestWidth) {
  const Machine cheap_rows{.verify_row_us = 1, .noise = 0.5};
  Simulation simulation(cheap_rows);
  simulation.run(3000, {kGood});
  EXPECT_GT(simulation.rate(), 0.97 * best_rate(cheap_rows, kGood));
  EXPECT_GT(simulation.rate(), 1.3 * rate_of_width(cheap_rows, kGood, 0));
}

TEST(WidthPolicy, DecodesPlainlyWhereDraftsDoNotPay) {
  const Machine machine{.verify_us = 20, .verify_row_us = 80, .noise = 0.5};
  Simulation simulation(machine);
  simulation.run(5000, {kPoor});
  EXPECT_EQ(simulation.usual_width(), 0);
  EXPECT_GT(simulation.rate(), 0.985 * rate_of_width(machine, kPoor, 0));
  // Texts of 50 cycles, each of which has to find its own way.
  Simulation short_texts(machine);
  double slowest = 1;
  for (int text = 0; text < 60; ++text) {
    short_texts.new_texts();
    short_texts.run(50, {kPoor});
    if (text > 0) slowest = std::min(slowest, short_texts.rate() / rate_of_width(machine, kPoor, 0));
  }
  EXPECT_GT(slowest, 0.95);
}

TEST(WidthPolicy, TriesCostLessThanAHundredthOfTheTime) {
  const Machine machine{.verify_us = 20, .verify_row_us = 80};
  Simulation simulation(machine);
  simulation.run(200, {kPoor});  // learns
  simulation.run(20000, {kPoor});
  const std::vector<int32_t>& widths = simulation.widths();
  EXPECT_GT(std::ranges::count_if(widths, [](int32_t width) { return width > 0; }), 20) << "it does try";
  EXPECT_GT(simulation.rate(), 0.99 * rate_of_width(machine, kPoor, 0));
}

TEST(WidthPolicy, DraftsAgainWhenItPaysAgain) {
  const Machine machine{.verify_row_us = 5};
  Simulation simulation(machine);
  simulation.run(1000, {kPoor});
  EXPECT_EQ(simulation.usual_width(), 0);
  simulation.new_texts();
  simulation.run(6000, {kGood});
  simulation.run(1000, {kGood});
  EXPECT_GT(simulation.rate(), 0.95 * best_rate(machine, kGood));
}

TEST(WidthPolicy, NoiseDoesNotFlipIt) {
  // Several widths are about as good as each other.
  const Machine machine{.verify_row_us = 20, .noise = 1.0};
  constexpr Chances kFlat = {0.6, 0.6, 0.6, 0.6, 0.6, 0.6, 0.6};
  Simulation simulation(machine);
  simulation.run(1000, {kFlat});
  simulation.run(2000, {kFlat});
  // A try changes the width twice.
  EXPECT_LT(simulation.changes(), 2000 / 4);
  EXPECT_GT(simulation.rate(), 0.95 * best_rate(machine, kFlat));
}

TEST(WidthPolicy, ABatchSpendsItsDraftsWhereTheyAreAccepted) {
  const Machine machine{.verify_us = 200, .verify_row_us = 25};
  Simulation simulation(machine, 2);
  simulation.run(500, {kPoor, kGood});
  int64_t poor = 0, good = 0;
  for (int i = 0; i < 100; ++i) {
    simulation.run(1, {kPoor, kGood});
    poor += simulation.newest()[0];
    good += simulation.newest()[1];
  }
  EXPECT_GT(good, 2 * poor + 100);
}

TEST(WidthPolicy, KeepsToTheRoomOfEachSequence) {
  const Machine machine{.verify_row_us = 0.1};
  WidthPolicy policy(3, kMaxWidth, costs_of(machine, 3));
  const AdaptiveWidth near_end = policy.begin();
  const AdaptiveWidth at_end = policy.begin();
  const std::vector<WidthSeat> seats = {
      {.adaptive = &near_end, .most = 2}, {.adaptive = nullptr, .most = 3}, {.adaptive = &at_end, .most = 0}};
  std::vector<int32_t> widths(3);
  int32_t widest = 0;
  for (int i = 0; i < 50; ++i) {
    policy.choose(seats, widths);
    EXPECT_LE(widths[0], 2);
    EXPECT_EQ(widths[1], 3);
    EXPECT_EQ(widths[2], 0);
    widest = std::max(widest, widths[0]);
  }
  EXPECT_EQ(widest, 2);  // its room is used
}

}  // namespace
}  // namespace blockdraft::test
