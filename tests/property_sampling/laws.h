// Laws of random choices: how well counts fit probabilities.
#pragma once

#include <cmath>
#include <cstdint>
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

// Pearson's test. A correct program fails it once in about 10^6 sets of seeds; seeds are fixed. Ids with less than five
// expected are counted together.
inline void expect_law(const std::vector<int64_t>& counts, const Law& law) {
  ASSERT_EQ(counts.size(), law.size());
  double draws = 0;
  for (const int64_t count : counts) draws += static_cast<double>(count);
  double chi_square = 0;
  double rest = 0;
  double rest_expected = 0;
  int cells = 0;
  const auto add = [&](double count, double expected) {
    chi_square += (count - expected) * (count - expected) / expected;
    ++cells;
  };
  for (size_t i = 0; i < law.size(); ++i) {
    const double expected = draws * law[i];
    if (law[i] == 0) {
      EXPECT_EQ(counts[i], 0) << "id " << i << " has probability 0";
    } else if (expected < 5) {
      rest += static_cast<double>(counts[i]);
      rest_expected += expected;
    } else {
      add(static_cast<double>(counts[i]), expected);
    }
  }
  if (rest_expected >= 5) {
    add(rest, rest_expected);
  } else {
    EXPECT_LE(rest, rest_expected + 6 * std::sqrt(rest_expected) + 3);
  }
  ASSERT_GE(cells, 2) << "too few cells to say anything";
  const double freedom = cells - 1;
  const double part = 2 / (9 * freedom);  // Wilson and Hilferty's approximation
  const double limit = freedom * std::pow(1 - part + 4.75 * std::sqrt(part), 3);
  EXPECT_LT(chi_square, limit) << draws << " draws, " << cells << " cells";
}

}  // namespace blockdraft::test
