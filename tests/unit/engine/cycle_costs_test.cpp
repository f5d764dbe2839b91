#include "engine/cycle_costs.h"

#include <gtest/gtest.h>

namespace blockdraft::test {
namespace {

TEST(RowCosts, StraightLinesJoinWhatWasMeasured) {
  RowCosts costs(20);
  EXPECT_FALSE(costs.is_measured());
  costs.set(2, 100);
  costs.set(6, 300);
  EXPECT_DOUBLE_EQ(costs.us(0), 0);
  EXPECT_DOUBLE_EQ(costs.us(1), 100);  // fewer rows are not known to be faster
  EXPECT_DOUBLE_EQ(costs.us(2), 100);
  EXPECT_DOUBLE_EQ(costs.us(3), 150);
  EXPECT_DOUBLE_EQ(costs.us(6), 300);
  EXPECT_DOUBLE_EQ(costs.us(12), 600);  // more rows cost in proportion
  EXPECT_DOUBLE_EQ(costs.us(40), 1000);
  costs.scale(4, 1.5);  // of 200
  EXPECT_DOUBLE_EQ(costs.us(4), 300);
  EXPECT_DOUBLE_EQ(costs.us(3), 200);
}

CycleCosts measured() {
  CycleCosts costs(64, 4, 5);
  costs.set({.context_rows = 1}, {.context_us = 10});
  for (int32_t w = 0; w <= 4; ++w) {
    if (w > 0) costs.set({.drafts = w}, {.propose_us = 50.0 + 10 * w});
    costs.set({.verify_rows = w + 1}, {.verify_us = 100.0 + 20 * w});
  }
  return costs;
}

CycleWork work_of(int32_t width) { return {.context_rows = 1, .drafts = width, .verify_rows = width + 1}; }

CycleTimes times_of(int32_t width, double factor) {
  return {.context_us = 10 * factor,
          .propose_us = width == 0 ? 0 : (50.0 + 10 * width) * factor,
          .verify_us = (100.0 + 20 * width) * factor};
}

TEST(CycleCosts, AddUp) {
  EXPECT_DOUBLE_EQ(measured().us(work_of(2)), 10 + 70 + 140);
  EXPECT_DOUBLE_EQ(measured().us({.verify_rows = 1}), 100);
}

// Another program makes everything slower while one width is in use: nothing is said of that width against the others.
TEST(CycleCosts, ALoadIsNotTakenForACostOfTheWidthInUse) {
  CycleCosts costs = measured();
  const double before = costs.us(work_of(3)) / costs.us(work_of(0));
  for (int i = 0; i < 300; ++i) costs.observe(work_of(3), times_of(3, 2.5));
  EXPECT_NEAR(costs.us(work_of(3)) / costs.us(work_of(0)), before, 0.12 * before);
  for (int i = 0; i < 300; ++i) costs.observe(work_of(3), times_of(3, 1.0));
  EXPECT_NEAR(costs.us(work_of(3)) / costs.us(work_of(0)), before, 0.03 * before);
}

TEST(CycleCosts, APauseOfTheProcessDoesNoHarm) {
  CycleCosts costs = measured();
  const double before = costs.us(work_of(2));
  costs.observe(work_of(2), times_of(2, 1000));
  EXPECT_LT(costs.us(work_of(2)), before * 1.05);
}

// The profile was wrong about one width by a factor of two: using it among others puts it right.
TEST(CycleCosts, FollowWhatCyclesTake) {
  CycleCosts costs = measured();
  costs.set({.verify_rows = 5}, {.verify_us = 360});  // truly 180
  for (int i = 0; i < 200; ++i) {
    costs.observe(work_of(1), times_of(1, 1));
    costs.observe(work_of(4), times_of(4, 1));
  }
  EXPECT_NEAR(costs.us({.verify_rows = 5}) / costs.us({.verify_rows = 2}), 180.0 / 120, 0.1);
}

}  // namespace
}  // namespace blockdraft::test
