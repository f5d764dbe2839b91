#include "blockdraft/accept.h"

#include <vector>

#include <gtest/gtest.h>

#include "support/expect_error.h"

namespace blockdraft {
namespace {

using Ids = std::vector<int32_t>;

TEST(AcceptGreedy, KeepsTheAgreeingDraftsAndTheTargetsNextToken) {
  const auto kept = accept_greedy(Ids{5, 6, 7}, Ids{5, 6, 9, 4}, 10);
  ASSERT_TRUE(kept);
  EXPECT_EQ(kept->accepted, 2);
  EXPECT_EQ(kept->produced, 3);
  EXPECT_FALSE(kept->at_stop || kept->at_length);
}

TEST(AcceptGreedy, EndsAtAStopTokenAndAtTheLength) {
  const auto stopped = accept_greedy(Ids{5, 0, 7}, Ids{5, 0, 7, 4}, 10, Ids{0});
  ASSERT_TRUE(stopped);
  EXPECT_EQ(stopped->accepted, 3);
  EXPECT_EQ(stopped->produced, 2);
  EXPECT_TRUE(stopped->at_stop);
  const auto full = accept_greedy(Ids{5, 6, 7}, Ids{5, 6, 7, 4}, 2, Ids{0});
  ASSERT_TRUE(full);
  EXPECT_EQ(full->produced, 2);
  EXPECT_TRUE(full->at_length);
}

TEST(AcceptGreedy, RefusesWhatDoesNotFit) {
  expect_error(accept_greedy(Ids{5, 6}, Ids{5, 6}, 1), Code::invalid_argument, {"2 choices for 2 drafts, expected 3"});
  expect_error(accept_greedy(Ids{}, Ids{5}, 0), Code::invalid_argument, {"remaining is 0, expected at least 1"});
}

}  // namespace
}  // namespace blockdraft
