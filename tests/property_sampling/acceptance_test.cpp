// The ratio test: the vectors of spec section 10, and its law with every kind of q.

#include <array>
#include <cmath>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "property_sampling/laws.h"
#include "verify/accept.h"
#include "verify/accept_ratio.h"

namespace blockdraft::test {
namespace {

using Row = std::vector<float>;

Row row_of(const Law& law) { return {law.begin(), law.end()}; }

double accept_noise(NoiseKey key) {
  key.purpose = NoisePurpose::accept;
  return uniform_noise(key);
}

TEST(AcceptRatio, GivesTheVectorsOfTheSpecification) {
  const Row q = {0.2f, 0.7f, 0.1f};
  const ProbabilityRow full{.values = q.data(), .count = 3};
  int kept = 0;
  int certain_kept = 0;
  for (int32_t position = 0; position < 2000; ++position) {
    const NoiseKey key{.seed = 3, .position = position};
    const double u = accept_noise(key);
    Row p = {0.5f, 0.3f, 0.2f};
    const RatioTest test = accept_ratio(p, full, 1, key);
    EXPECT_EQ(test.kept, u < 0.3 / 0.7);
    if (test.kept) {
      EXPECT_EQ(test.token, 1);
    } else {
      EXPECT_NEAR(p[0], 0.3f, 1e-6f);
      EXPECT_EQ(p[1], 0.0f);
      EXPECT_NEAR(p[2], 0.1f, 1e-6f);
      EXPECT_NE(test.token, 1);
    }
    kept += test.kept;
    Row again = {0.5f, 0.3f, 0.2f};
    const RatioTest certain = accept_ratio(again, {}, 1, key);
    EXPECT_EQ(certain.kept, u < 0.3f);
    if (!certain.kept) {
      EXPECT_EQ(again, (Row{0.5f, 0.0f, 0.2f}));
      EXPECT_NE(certain.token, 1);
    }
    certain_kept += certain.kept;
  }
  EXPECT_NEAR(kept / 2000.0, 0.428571, 0.05);
  EXPECT_NEAR(certain_kept / 2000.0, 0.3, 0.05);
}

TEST(AcceptRatio, NeverKeepsWhatTheTargetExcludes) {
  const Row q = {0.0f, 1.0f, 0.0f};
  for (int32_t position = 0; position < 500; ++position) {
    Row p = {0.5f, 0.0f, 0.5f};
    const RatioTest test = accept_ratio(p, {.values = q.data(), .count = 3}, 1, {.position = position});
    EXPECT_FALSE(test.kept);
    EXPECT_NE(test.token, 1);
  }
}

TEST(AcceptRatio, KeepsEverythingIfBothLawsAreTheSame) {
  const Row law = {0.1f, 0.6f, 0.3f};
  for (int32_t position = 0; position < 500; ++position) {
    Row p = law;
    EXPECT_TRUE(accept_ratio(p, {.values = law.data(), .count = 3}, 1 + position % 2, {.position = position}).kept);
  }
}

TEST(AcceptRatio, FallsBackToTheTargetsLawWithoutResidual) {
  // q exceeds p everywhere, as rounding may have it: what is not kept is drawn from p.
  const Row q = {0.6f, 0.7f};
  std::vector<int64_t> counts(2);
  for (int32_t position = 0; position < 4000; ++position) {
    Row p = {0.4f, 0.6f};
    const RatioTest test = accept_ratio(p, {.values = q.data(), .count = 2}, 0, {.seed = 5, .position = position});
    if (!test.kept) ++counts[static_cast<size_t>(test.token)];
  }
  expect_law(counts, {0.4, 0.6});
}

TEST(Draw, NeverGivesAnIdWithoutWeight) {
  const Row weights = {0.0f, 0.25f, 0.0f, 0.5f, 0.0f};
  EXPECT_EQ(draw(weights, to_uniform(0)), 1);
  EXPECT_EQ(draw(weights, 0.3), 1);
  EXPECT_EQ(draw(weights, 0.4), 3);
  EXPECT_EQ(draw(weights, to_uniform(0xffffffff)), 3);
}

enum class Kind { full_row, candidates, certain };

class RatioLaw : public testing::TestWithParam<std::tuple<Kind, float>> {};

// Two drafts: what the first position, the second after a kept first, and the bonus after two kept ones get.
TEST_P(RatioLaw, FieldFault15_IsTheTargets) {
  const auto [kind, temperature] = GetParam();
  constexpr size_t kCount = 8;
  constexpr int32_t kTrials = 60000;
  const Row target_logits = {1.0f, 0.2f, -0.5f, 1.5f, 0.0f, -2.0f, 0.8f, 0.4f};
  const Row drafter_logits = {0.5f, 1.2f, -0.5f, 0.3f, 1.0f, -1.0f, 0.0f, 0.9f};
  // After token v the target's logits are rotated by v, so that laws depend on what was kept.
  const auto p_after = [&](size_t rotation) {
    Row logits(kCount);
    for (size_t i = 0; i < kCount; ++i) logits[i] = target_logits[(i + rotation) % kCount];
    return softmax(logits, static_cast<double>(temperature));
  };
  const Law q_law = softmax(drafter_logits, static_cast<double>(temperature));
  const std::vector<int32_t> listed = {6, 1, 4, 3};  // of the candidates
  Row q = row_of(q_law);
  ProbabilityRow q_row{.values = q.data(), .count = kCount};
  if (kind == Kind::candidates) {
    q.clear();
    double total = 0;
    for (const int32_t id : listed) total += q_law[static_cast<size_t>(id)];
    for (const int32_t id : listed) q.push_back(static_cast<float>(q_law[static_cast<size_t>(id)] / total));
    q_row = {listed.data(), q.data(), static_cast<int64_t>(q.size())};
  }
  const auto draft = [&](NoiseKey key) {
    if (kind == Kind::certain) return int32_t{3};
    key.purpose = NoisePurpose::draft;
    const int32_t place = draw(q, uniform_noise(key));
    return kind == Kind::candidates ? listed[static_cast<size_t>(place)] : place;
  };
  if (kind == Kind::certain) q_row = {};

  std::vector<int64_t> first(kCount);
  std::array<std::vector<int64_t>, kCount> second;
  for (auto& counts : second) counts.resize(kCount);
  std::array<std::vector<int64_t>, kCount> bonus = second;
  for (int32_t trial = 0; trial < kTrials; ++trial) {
    const auto key = [&](int32_t position) {
      return NoiseKey{.seed = static_cast<uint64_t>(trial), .position = position};
    };
    Row p = row_of(p_after(0));
    const RatioTest test = accept_ratio(p, q_row, draft(key(1)), key(1));
    ++first[static_cast<size_t>(test.token)];
    if (!test.kept) continue;
    const auto one = static_cast<size_t>(test.token);
    p = row_of(p_after(one));
    const RatioTest next = accept_ratio(p, q_row, draft(key(2)), key(2));
    ++second[one][static_cast<size_t>(next.token)];
    if (!next.kept) continue;
    const size_t two = (one + static_cast<size_t>(next.token)) % kCount;
    p = row_of(p_after(two));
    ++bonus[two][static_cast<size_t>(draw_bonus(p, key(3)))];
  }
  expect_law(first, p_after(0));
  int checked = 0;
  for (size_t i = 0; i < kCount; ++i) {
    for (const auto* counts : {&second[i], &bonus[i]}) {
      if (std::accumulate(counts->begin(), counts->end(), int64_t{0}) < 200) continue;
      expect_law(*counts, p_after(i));
      ++checked;
    }
  }
  EXPECT_GE(checked, 2);
}
INSTANTIATE_TEST_SUITE_P(, RatioLaw,
                         testing::Combine(testing::Values(Kind::full_row, Kind::candidates, Kind::certain),
                                          testing::Values(0.3f, 1.0f, 2.0f)));

TEST(Commit, TakesTheNumberOfAcceptedDraftsAsGiven) {
  const std::vector<int32_t> choices = {5, 6, 7, 0, 0};
  const Committed committed = commit(2, choices, 10, {});
  EXPECT_EQ(committed.produced, 3);
  EXPECT_EQ(committed.accepted, 2);
  EXPECT_FALSE(committed.at_stop);
  const std::vector<int32_t> stop = {6};
  EXPECT_EQ(commit(2, choices, 10, stop).produced, 2);
  EXPECT_TRUE(commit(2, choices, 10, stop).at_stop);
  EXPECT_TRUE(commit(2, choices, 2, {}).at_length);
}

}  // namespace
}  // namespace blockdraft::test
