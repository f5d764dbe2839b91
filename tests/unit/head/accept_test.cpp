#include "blockdraft/accept.h"

#include <cmath>
#include <limits>
#include <set>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/expect_error.h"

namespace blockdraft {
namespace {

using Ids = std::vector<int32_t>;
using Row = std::vector<float>;
using ::testing::FloatNear;
using ::testing::Pointwise;

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

TEST(ChooseToken, TakesTheLargestOrDraws) {
  const std::vector<float> logits{1, 3, 3, -2};
  EXPECT_EQ(choose_token(logits, {}, 5).value(), 1);
  EXPECT_EQ(choose_token(logits, {.temperature = 2, .top_k = 1}, 5).value(), 1);
  std::set<int32_t> drawn;
  for (int32_t position = 0; position < 200; ++position) {
    const Sampling sampling{.temperature = 1, .top_k = 3, .seed = 2};
    const int32_t id = choose_token(logits, sampling, position).value();
    EXPECT_EQ(choose_token(logits, sampling, position).value(), id) << "a function of what it is given";
    drawn.insert(id);
  }
  EXPECT_EQ(drawn, (std::set<int32_t>{0, 1, 2}));
}

TEST(ChooseToken, RefusesWhatDoesNotFit) {
  const float nan = std::nanf("");
  const float inf = std::numeric_limits<float>::infinity();
  expect_error(choose_token({}, {}, 0), Code::invalid_argument, {"0 logits, expected 1 to"});
  expect_error(choose_token(Row{1, 2}, {.temperature = -1}, 0), Code::invalid_argument,
               {"temperature is -1, expected 0 to 100"});
  expect_error(choose_token(Row{1, 2}, {.top_p = 0}, 0), Code::invalid_argument, {"top_p is 0, expected more than 0"});
  for (const float temperature : {0.0f, 1.0f}) {
    expect_error(choose_token(Row{1, nan}, {.temperature = temperature}, 0), Code::numeric, {"not numbers"});
  }
  for (const Row& row : {Row{1, inf}, Row{-inf, -inf}, Row{1e38f, 0}}) {
    expect_error(choose_token(row, {.temperature = 1e-3f}, 0), Code::numeric, {"not numbers"});
    Row changed = row;
    expect_error(to_probabilities(changed, {.temperature = 1e-3f}), Code::numeric, {"not numbers"});
  }
}

TEST(ToProbabilities, IsTheLawThatIsDrawnFrom) {
  Row row{0, std::log(3.0f), std::log(6.0f)};
  ASSERT_TRUE(to_probabilities(row, {.temperature = 1}));
  EXPECT_THAT(row, Pointwise(FloatNear(1e-6f), Row{0.1f, 0.3f, 0.6f}));
  row = {0, std::log(3.0f), std::log(6.0f)};
  ASSERT_TRUE(to_probabilities(row, {.temperature = 1, .top_p = 0.7f}));
  EXPECT_THAT(row, Pointwise(FloatNear(1e-6f), Row{0, 1.0f / 3, 2.0f / 3}));
  row = {2, 5, 5};
  ASSERT_TRUE(to_probabilities(row, {}));
  EXPECT_EQ(row, (Row{0, 1, 0}));
}

// Two ids, so that what happens can be counted: q gives id 0 with 0.9, p with 0.4.
TEST(AcceptRatio, GivesTheLawOfTheTarget) {
  const Row q{0.9f, 0.1f};
  const Ids listed{1, 0};  // the same law, by ids
  const Row by_ids{0.1f, 0.9f};
  constexpr uint32_t kTrials = 20000;
  for (const TokenLaw& law : {TokenLaw{{}, q}, TokenLaw{listed, by_ids}, TokenLaw{}}) {
    int32_t zeros = 0, kept_zeros = 0, zero_drafts = 0;
    for (uint32_t choice = 0; choice < kTrials; ++choice) {
      const int32_t draft = choice % 10 == 0 ? 1 : 0;
      Row p{0.4f, 0.6f, 0.5f, 0.5f};
      Ids tokens;
      const auto kept = accept_ratio({.drafts = {&draft, 1},
                                      .laws = {&law, 1},
                                      .probabilities = p,
                                      .position = 11,
                                      .seed = 1,
                                      .choice = choice,
                                      .remaining = 5},
                                     tokens);
      ASSERT_TRUE(kept) << kept.error().message;
      ASSERT_EQ(tokens.size(), static_cast<size_t>(kept->accepted) + 1);
      zeros += tokens[0] == 0;
      zero_drafts += draft == 0;
      kept_zeros += draft == 0 && kept->accepted == 1;
    }
    EXPECT_NEAR(zeros, 0.4 * kTrials, 4 * std::sqrt(0.24 * kTrials));
    const double share = law.probabilities.empty() ? 0.4 : 0.4 / 0.9;
    EXPECT_NEAR(kept_zeros, share * zero_drafts, 4 * std::sqrt(0.25 * zero_drafts));
  }
}

TEST(AcceptRatio, EndsAtAStopTokenAndAtTheLength) {
  const Ids drafts{1, 0};
  const std::vector<TokenLaw> laws(2);
  const int32_t stop = 1;
  Row p{0, 1, 1, 0, 0, 1};
  Ids tokens;
  const auto stopped = accept_ratio(
      {.drafts = drafts, .laws = laws, .probabilities = p, .remaining = 9, .stop_ids = {&stop, 1}}, tokens);
  ASSERT_TRUE(stopped) << stopped.error().message;
  EXPECT_TRUE(stopped->at_stop);
  EXPECT_EQ(tokens, Ids{1});
  const auto full = accept_ratio({.drafts = drafts, .laws = laws, .probabilities = p, .remaining = 2}, tokens);
  ASSERT_TRUE(full) << full.error().message;
  EXPECT_EQ(full->accepted, 2);
  EXPECT_TRUE(full->at_length);
  EXPECT_EQ(tokens, (Ids{1, 0}));
}

TEST(AcceptRatio, RefusesWhatDoesNotFit) {
  const Row half{0.5f, 0.5f};
  const Ids twice{1, 1}, far{0, 2};
  const auto refused = [](int32_t draft, const TokenLaw& law, Row p, std::string_view message) {
    Ids tokens;
    expect_error(accept_ratio({.drafts = {&draft, 1}, .laws = {&law, 1}, .probabilities = p, .remaining = 1}, tokens),
                 Code::invalid_argument, {message});
  };
  const Row sound{0.5f, 0.5f, 0.5f, 0.5f};
  refused(0, {{}, half}, {0.5f, 0.5f, 1}, "3 probabilities for 1 drafts, expected 2 rows of equal length");
  refused(0, {{}, half}, {}, "0 probabilities for 1 drafts");
  refused(2, {{}, half}, sound, "draft 0 is 2, expected 0 to 1");
  refused(-1, {{}, half}, sound, "draft 0 is -1, expected 0 to 1");
  refused(0, {{}, sound}, sound, "law 0 has 4 probabilities, the rows have 2");
  refused(0, {far, half}, sound, "law 0 has the id 2, expected 0 to 1");
  refused(1, {twice, half}, sound, "law 0 has the id 1 twice, expected once");
  refused(1, {std::span(twice).first(1), half}, sound, "law 0 has 1 ids and 2 probabilities");
  refused(1, {{}, std::span(half).first(1)}, sound, "law 0 has probabilities that sum to 0.5, expected 1");
  const Row certain{1, 0};
  refused(1, {{}, certain}, sound, "draft 0 is 1, which its law does not give");
  refused(0, {{}, half}, {0.5f, 0.6f, 0.5f, 0.5f}, "row 0 has probabilities that sum to 1.1");
  refused(0, {{}, half}, {1.5f, -0.5f, 0.5f, 0.5f}, "row 0 has the probability -0.5");
  refused(0, {{}, half}, {1, 0, std::nanf(""), 0.5f}, "row 1 has the probability nan");
  Ids tokens;
  Row p = sound;
  expect_error(accept_ratio({.drafts = Ids{0}, .probabilities = p, .remaining = 1}, tokens), Code::invalid_argument,
               {"0 laws for 1 drafts"});
  expect_error(accept_ratio({.probabilities = p, .remaining = 0}, tokens), Code::invalid_argument, {"remaining is 0"});
  expect_error(accept_ratio({.probabilities = p, .position = -1, .remaining = 1}, tokens), Code::invalid_argument,
               {"position is -1, expected 0 to 2147483646"});
}

}  // namespace
}  // namespace blockdraft
