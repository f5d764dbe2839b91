// The probabilities of acceptance against their definitions and against draws.

#include "verify/expected_acceptance.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "base/noise.h"

namespace blockdraft::test {
namespace {

using Row = std::vector<float>;

Row random_law(std::mt19937& generator, size_t count, double spread, double zeros) {
  std::normal_distribution<double> normal(0, spread);
  std::vector<double> weights;
  double total = 0;
  for (size_t i = 0; i < count; ++i) {
    const bool is_zero = i > 0 && std::uniform_real_distribution<double>()(generator) < zeros;
    total += weights.emplace_back(is_zero ? 0 : std::exp(normal(generator)));
  }
  Row law;
  for (const double weight : weights) law.push_back(static_cast<float>(weight / total));
  return law;
}

ProbabilityRow full_row(const Row& law) { return {.values = law.data(), .count = static_cast<int64_t>(law.size())}; }

double coupled_by_definition(const Row& p, const Row& q) {
  double sum = 0;
  for (size_t x = 0; x < p.size(); ++x) {
    if (p[x] == 0 || q[x] == 0) continue;
    double total = 0;
    for (size_t y = 0; y < p.size(); ++y) {
      total += std::max(static_cast<double>(p[y]) / static_cast<double>(p[x]),
                        static_cast<double>(q[y]) / static_cast<double>(q[x]));
    }
    sum += 1 / total;
  }
  return sum;
}

TEST(ExpectedAcceptance, FollowsTheDefinitionsWithinTheirBounds) {
  std::mt19937 generator(3);
  for (int trial = 0; trial < 500; ++trial) {
    const size_t count = 1 + generator() % 40;
    const Row p = random_law(generator, count, 2, trial % 2 == 0 ? 0 : 0.4);
    const Row q = random_law(generator, count, 2, trial % 3 == 0 ? 0 : 0.4);
    double shared = 0;
    for (size_t i = 0; i < count; ++i) shared += static_cast<double>(std::min(p[i], q[i]));
    const double ratio = expected_ratio_acceptance(p, full_row(q));
    const double coupled = expected_coupled_acceptance(p, full_row(q));
    EXPECT_NEAR(ratio, std::min(shared, 1.0), 1e-9);
    EXPECT_NEAR(coupled, coupled_by_definition(p, q), 1e-6);
    EXPECT_GE(coupled, shared / (2 - shared) - 1e-6);  // (1 - d) / (1 + d)
    EXPECT_LE(coupled, shared + 1e-6);
    // As a list of ids in any order.
    std::vector<int32_t> ids;
    Row values;
    for (size_t i = count; i > 0; --i) {
      ids.push_back(static_cast<int32_t>(i - 1));
      values.push_back(q[i - 1]);
    }
    const ProbabilityRow list{ids.data(), values.data(), static_cast<int64_t>(count)};
    EXPECT_NEAR(expected_ratio_acceptance(p, list), ratio, 1e-12);
    EXPECT_NEAR(expected_coupled_acceptance(p, list), coupled, 1e-12);
  }
}

TEST(ExpectedAcceptance, IsCertainForEqualLawsAndNoneForDisjointOnes) {
  const Row law = {0.25f, 0.5f, 0.0f, 0.25f};
  EXPECT_DOUBLE_EQ(expected_ratio_acceptance(law, full_row(law)), 1.0);
  EXPECT_DOUBLE_EQ(expected_coupled_acceptance(law, full_row(law)), 1.0);
  const Row other = {0.0f, 0.0f, 1.0f, 0.0f};
  EXPECT_EQ(expected_ratio_acceptance(law, full_row(other)), 0.0);
  EXPECT_EQ(expected_coupled_acceptance(law, full_row(other)), 0.0);
}

int32_t coupled_draw(const Row& law, uint64_t seed) {
  GumbelNoise gumbel({.seed = seed});
  int32_t best = 0;
  double best_score = -INFINITY;
  for (int32_t id = 0; id < static_cast<int32_t>(law.size()); ++id) {
    const double score = std::log(static_cast<double>(law[static_cast<size_t>(id)])) + gumbel(id);
    if (score > best_score) {
      best = id;
      best_score = score;
    }
  }
  return best;
}

TEST(ExpectedAcceptance, IsHowOftenCoupledDrawsAgree) {
  std::mt19937 generator(4);
  for (int trial = 0; trial < 6; ++trial) {
    const Row p = random_law(generator, 9, 1.5, 0.2);
    const Row q = random_law(generator, 9, 1.5, 0.2);
    constexpr int kDraws = 20000;
    int agreed = 0;
    for (uint64_t seed = 0; seed < kDraws; ++seed) agreed += coupled_draw(p, seed) == coupled_draw(q, seed);
    const double expected = expected_coupled_acceptance(p, full_row(q));
    EXPECT_NEAR(agreed, kDraws * expected, 4 * std::sqrt(kDraws * expected * (1 - expected)) + 1);
  }
}

}  // namespace
}  // namespace blockdraft::test
