#include "verify/accept.h"

#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace blockdraft {
namespace {

using Ids = std::vector<int32_t>;

TEST(AcceptedPrefix, CountsLeadingDraftsThatAgree) {
  EXPECT_EQ(accepted_prefix(Ids{}, Ids{7}), 0);
  EXPECT_EQ(accepted_prefix(Ids{7}, Ids{7, 8}), 1);
  EXPECT_EQ(accepted_prefix(Ids{6}, Ids{7, 8}), 0);
  EXPECT_EQ(accepted_prefix(Ids{1, 2, 3}, Ids{1, 2, 3, 4}), 3);
  EXPECT_EQ(accepted_prefix(Ids{1, 9, 3}, Ids{1, 2, 3, 4}), 1);  // what agrees after a rejected draft does not count
  EXPECT_EQ(accepted_prefix(Ids{2, 3, 4}, Ids{1, 2, 3, 4}), 0);  // nor does a draft that is right one place later
}

struct Case {
  const char* name;
  Ids drafts, choices;
  int64_t remaining;
  Ids stop_ids;
  int32_t accepted, produced;
  bool at_stop, at_length;
};

class CommitGreedy : public testing::TestWithParam<Case> {};

TEST_P(CommitGreedy, KeepsWhatTheTargetWouldHaveSaid) {
  const Case& c = GetParam();
  const Committed committed = commit_greedy(c.drafts, c.choices, c.remaining, c.stop_ids);
  EXPECT_EQ(committed.accepted, c.accepted);
  EXPECT_EQ(committed.produced, c.produced);
  EXPECT_EQ(committed.at_stop, c.at_stop);
  EXPECT_EQ(committed.at_length, c.at_length);
}

INSTANTIATE_TEST_SUITE_P(
    , CommitGreedy,
    testing::Values(Case{"PlainDecoding", {}, {5}, 9, {}, 0, 1, false, false},
                    Case{"PlainLastToken", {}, {5}, 1, {}, 0, 1, false, true},
                    Case{"PlainStop", {}, {5}, 9, {5}, 0, 1, true, false},
                    Case{"NothingAcceptedGivesTheBonus", {4, 4, 4}, {1, 2, 3, 4}, 9, {}, 0, 1, false, false},
                    Case{"SomeAccepted", {1, 2, 4}, {1, 2, 3, 4}, 9, {}, 2, 3, false, false},
                    Case{"AllAccepted", {1, 2, 3}, {1, 2, 3, 4}, 9, {}, 3, 4, false, false},
                    Case{"ExactlyFilled", {1, 2, 3}, {1, 2, 3, 4}, 4, {}, 3, 4, false, true},
                    Case{"BonusDoesNotFit", {1, 2, 3}, {1, 2, 3, 4}, 3, {}, 3, 3, false, true},
                    Case{"OneFits", {1, 2, 3}, {1, 2, 3, 4}, 1, {}, 3, 1, false, true},
                    Case{"StopIsTheFirstDraft", {1, 2, 3}, {1, 2, 3, 4}, 9, {1}, 3, 1, true, false},
                    Case{"StopInside", {1, 2, 3}, {1, 2, 3, 4}, 9, {2}, 3, 2, true, false},
                    Case{"StopIsTheBonus", {1, 2, 3}, {1, 2, 3, 4}, 9, {4}, 3, 4, true, false},
                    Case{"TheFirstOfSeveralStops", {1, 2, 3}, {1, 2, 3, 4}, 9, {4, 3}, 3, 3, true, false},
                    Case{"StopIsTheLastThatFits", {1, 2, 3}, {1, 2, 3, 4}, 2, {2}, 3, 2, true, true},
                    Case{"StopBehindTheEnd", {1, 2, 3}, {1, 2, 3, 4}, 2, {3}, 3, 2, false, true},
                    Case{"StopAmongRejectedDrafts", {1, 9, 3}, {1, 2, 3, 4}, 9, {9, 3}, 1, 2, false, false},
                    Case{"StopIsTheBonusAfterARejection", {1, 9, 3}, {1, 2, 3, 4}, 9, {2}, 1, 2, true, false}),
    [](const auto& suite) { return std::string(suite.param.name); });

// Against the rule told token by token: draft after draft, as plain decoding would go.
TEST(CommitGreedyRandom, EqualsPlainDecoding) {
  std::mt19937 generator(3);
  const auto below = [&](int n) { return static_cast<int32_t>(generator() % static_cast<uint32_t>(n)); };
  for (int trial = 0; trial < 5000; ++trial) {
    Ids drafts, choices, stops;
    const int width = below(8);
    for (int i = 0; i <= width; ++i) choices.push_back(below(4));
    for (int i = 0; i < width; ++i) {
      drafts.push_back(below(5) != 0 ? choices[static_cast<size_t>(i)] : below(4));
    }
    for (int i = below(3); i > 0; --i) stops.push_back(below(8));
    const int64_t remaining = 1 + below(9);

    Ids plain;
    bool at_stop = false;
    for (size_t i = 0; i < choices.size() && static_cast<int64_t>(plain.size()) < remaining && !at_stop; ++i) {
      plain.push_back(choices[i]);
      for (const int32_t stop : stops) at_stop = at_stop || stop == choices[i];
      if (i < drafts.size() && drafts[i] != choices[i]) break;
    }
    const Committed committed = commit_greedy(drafts, choices, remaining, stops);
    EXPECT_EQ(committed.produced, static_cast<int32_t>(plain.size()));
    EXPECT_EQ(committed.at_stop, at_stop);
    EXPECT_EQ(committed.at_length, static_cast<int64_t>(plain.size()) == remaining);
  }
}

}  // namespace
}  // namespace blockdraft
