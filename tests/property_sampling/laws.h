// Laws of random choices: how well counts fit probabilities.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

namespace blockdraft::test {

using Law = std::vector<double>;

inline Law softmax(const std::vector<float>& logits, double temperature) {
  Law law;
  double total = 0;
  for (const float logit : logits) total += law.emplace_back(std::exp(static_cast<double>(logit) / temperature));
  for (double& p : law) p /= total;
  return law;
}

// Standard normal deviates that are exceeded with probability 10^-4 and 10^-6. Seeds are fixed: a test that passes
// today passes tomorrow.
inline constexpr double kOneIn10000 = 3.719;
inline constexpr double kOneInAMillion = 4.753;

struct ChiSquare {
  double statistic = 0;  // infinite if something was counted whose probability is 0
  int cells = 0;

  void add(double count, double expected) {
    statistic += (count - expected) * (count - expected) / expected;
    ++cells;
  }
  // What the statistic of a right law exceeds as rarely as a normal number exceeds `deviate` (Wilson and Hilferty).
  double limit(double deviate) const {
    const double freedom = cells - 1;
    const double part = 2 / (9 * freedom);
    return freedom * std::pow(1 - part + deviate * std::sqrt(part), 3);
  }
};

// Pearson's statistic. Cells with less than five expected are counted together.
inline ChiSquare chi_square(const std::vector<int64_t>& counts, const Law& law) {
  double draws = 0;
  for (const int64_t count : counts) draws += static_cast<double>(count);
  ChiSquare result;
  double rest = 0;
  double rest_expected = 0;
  bool impossible = false;
  for (size_t i = 0; i < law.size(); ++i) {
    const double expected = draws * law[i];
    if (law[i] == 0) {
      impossible = impossible || counts[i] > 0;
    } else if (expected < 5) {
      rest += static_cast<double>(counts[i]);
      rest_expected += expected;
    } else {
      result.add(static_cast<double>(counts[i]), expected);
    }
  }
  if (rest_expected >= 5) {
    result.add(rest, rest_expected);
  } else {
    impossible = impossible || rest > rest_expected + 6 * std::sqrt(rest_expected) + 3;
  }
  if (impossible) result.statistic = std::numeric_limits<double>::infinity();
  return result;
}

inline void expect_law(const std::vector<int64_t>& counts, const Law& law, double deviate = kOneInAMillion) {
  ASSERT_EQ(counts.size(), law.size());
  const ChiSquare found = chi_square(counts, law);
  ASSERT_GE(found.cells, 2) << "too few cells to say anything";
  EXPECT_LT(found.statistic, found.limit(deviate)) << found.cells << " cells";
}

}  // namespace blockdraft::test
