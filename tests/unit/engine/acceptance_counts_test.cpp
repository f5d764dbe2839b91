#include "engine/acceptance_counts.h"

#include <gtest/gtest.h>

namespace blockdraft::test {
namespace {

TEST(AcceptanceCounts, SayThePriorBeforeAnythingIsCounted) {
  const AcceptanceCounts counts(3, {});
  for (int32_t i = 0; i < 3; ++i) EXPECT_DOUBLE_EQ(counts.chance(i, 0.4, 5), 0.4);
}

// Of three cycles with 3 drafts, 3, 1 and 0 are accepted: draft 2 is reached twice, draft 3 once.
TEST(AcceptanceCounts, CountADraftOnlyWhereThoseBeforeItWereAccepted) {
  AcceptanceCounts counts(4, {});
  counts.observe(3, 3);
  counts.observe(3, 1);
  counts.observe(3, 0);
  const double tiny = 1e-9;
  EXPECT_NEAR(counts.chance(0, 0.5, tiny), 2.0 / 3, 1e-6);
  EXPECT_NEAR(counts.chance(1, 0.5, tiny), 1.0 / 2, 1e-6);
  EXPECT_NEAR(counts.chance(2, 0.5, tiny), 1.0, 1e-6);
  EXPECT_DOUBLE_EQ(counts.chance(3, 0.5, tiny), 0.5);  // never drafted
  EXPECT_NEAR(counts.chance(0, 0.5, 3), (2 + 1.5) / 6, 1e-12);
}

TEST(AcceptanceCounts, ForgetWhatIsLongAgo) {
  AcceptanceCounts counts(1, {.fade = 0.9, .idle_fade = 1.0});
  for (int i = 0; i < 200; ++i) counts.observe(1, 1);
  for (int i = 0; i < 50; ++i) counts.observe(1, 0);
  EXPECT_LT(counts.chance(0, 0.5, 1e-9), 0.01);
  const double before = counts.chance(0, 0.5, 1);
  counts.observe(0, 0);  // no draft: nothing fades here
  EXPECT_EQ(counts.chance(0, 0.5, 1), before);
}

TEST(AcceptanceCounts, ComeBackToThePriorWhileNothingIsDrafted) {
  AcceptanceCounts counts(2, {.fade = 1.0, .idle_fade = 0.9});
  for (int i = 0; i < 20; ++i) counts.observe(2, 0);
  EXPECT_LT(counts.chance(0, 0.8, 1), 0.1);
  for (int i = 0; i < 100; ++i) counts.observe(0, 0);
  EXPECT_NEAR(counts.chance(0, 0.8, 1), 0.8, 0.01);
}

}  // namespace
}  // namespace blockdraft::test
