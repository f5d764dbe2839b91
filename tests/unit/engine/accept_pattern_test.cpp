#include "engine/accept_pattern.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

namespace blockdraft::test {
namespace {

TEST(AcceptPattern, KeepsEachDraftWithItsChanceIfThoseBeforeItAreKept) {
  const std::vector<float> chances = {0.8f, 0.5f, 0.25f};
  const AcceptPattern pattern(chances);
  constexpr int kBlocks = 20000;
  std::vector<double> reached(3), kept(3);
  for (int block = 0; block < kBlocks; ++block) {
    const int32_t accepted = pattern.accepted(static_cast<size_t>(block % 7), 10 * block, 3);
    for (int32_t i = 0; i < 3; ++i) {
      if (i <= accepted) ++reached[static_cast<size_t>(i)];
      if (i < accepted) ++kept[static_cast<size_t>(i)];
    }
  }
  for (size_t i = 0; i < 3; ++i) {
    const double p = static_cast<double>(chances[i]);
    EXPECT_NEAR(kept[i] / reached[i], p, 5 * std::sqrt(p * (1 - p) / reached[i])) << "draft " << i;
  }
}

TEST(AcceptPattern, CertainChancesAreCertain) {
  const AcceptPattern pattern({1.0f, 1.0f, 0.0f, 1.0f});
  for (int32_t position = 0; position < 500; ++position) {
    EXPECT_EQ(pattern.accepted(0, position, 4), 2);
    EXPECT_EQ(pattern.accepted(0, position, 1), 1);
    EXPECT_EQ(pattern.accepted(0, position, 0), 0);
  }
}

TEST(AcceptPattern, NothingBehindTheListIsKept) { EXPECT_EQ(AcceptPattern({1.0f}).accepted(3, 4, 9), 1); }

// Widths are compared with each other: a narrower block must keep what the wider one keeps of it.
TEST(AcceptPattern, AWiderBlockKeepsNoLess) {
  const AcceptPattern pattern({0.7f, 0.7f, 0.7f, 0.7f});
  for (int32_t position = 0; position < 500; ++position) {
    const int32_t wide = pattern.accepted(1, position, 4);
    for (int32_t width = 0; width < 4; ++width) {
      EXPECT_EQ(pattern.accepted(1, position, width), std::min(wide, width));
    }
  }
}

}  // namespace
}  // namespace blockdraft::test
