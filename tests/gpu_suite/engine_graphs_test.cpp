// Cycles that are captured as graphs and repeated.
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "engine/cycle_graphs.h"
#include "gpu_suite/pairs.h"

namespace blockdraft::test {
namespace {

class GraphsOfCycles : public testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(, GraphsOfCycles, testing::ValuesIn(pair_names()),
                         [](const auto& suite) { return suite.param; });

// A text's cycles have the same shapes in every run: after two runs there is none left to capture.
TEST_P(GraphsOfCycles, TextsBeforeAndAfterCapturingAreEqual) {
  for (size_t kind = 0; kind < 3; ++kind) {
    const std::vector<TokenRequest> plain{
        {.prompt_ids = card_prompt(3, 40), .max_tokens = 60, .sampling = greedy_or_drawn(kind)}};
    const std::vector<TokenResult> expected = plain_texts(GetParam(), plain);
    Models models = open_pair(GetParam(), {.max_positions = kMixedPositions});
    const std::vector<TokenRequest> requests = with_width(plain, models.trained_width());
    std::vector<int64_t> captured;
    for (int text = 0; text < 4; ++text) {
      expect_same_texts(run(models, requests), expected);
      captured.push_back(models.engine->num_graphs());
    }
    EXPECT_GT(captured[1], 0);
    EXPECT_EQ(captured[2], captured[1]);
    EXPECT_EQ(captured[3], captured[1]);
  }
}

// Cycles of a target alone are all alike.
TEST(GraphsOfPlainCycles, AreOneAShape) {
  Models models = open_plain("Dflash", {.max_positions = kMixedPositions});
  const std::vector<TokenRequest> request{{.prompt_ids = card_prompt(4, 5), .max_tokens = 20}};
  const std::vector<TokenResult> first = run(models, request);
  EXPECT_EQ(models.engine->num_graphs(), 1);
  expect_same_texts(run(models, request), first);
  EXPECT_EQ(models.engine->num_graphs(), 1);
}

// A long text that drafts, and short ones that have no room for drafts.
std::vector<TokenRequest> long_and_short(const SamplingParams& long_text, const SamplingParams& short_texts,
                                         int32_t width) {
  std::vector<TokenRequest> requests{
      {.prompt_ids = card_prompt(5, 8), .max_tokens = 40, .width = width, .sampling = long_text}};
  for (uint32_t i = 0; i < 8; ++i) {
    requests.push_back(
        {.prompt_ids = card_prompt(70 + i, 8), .max_tokens = 2, .width = width, .sampling = short_texts});
  }
  return requests;
}

// Numbers of rows are the same whoever draws; what is queued is not.
TEST_P(GraphsOfCycles, TellWhetherItIsDraftsThatAreDrawn) {
  Models models = open_pair(GetParam(), {.max_sequences = 2, .max_positions = kMixedPositions});
  const SamplingParams greedy = greedy_or_drawn(0);
  const SamplingParams drawn = greedy_or_drawn(1);
  for (const auto& [first, second] : {std::pair(greedy, drawn), std::pair(drawn, greedy)}) {
    const std::vector<TokenRequest> requests = long_and_short(first, second, models.trained_width());
    const std::vector<TokenResult> expected = plain_texts(GetParam(), requests);
    expect_same_texts(run(models, requests), expected);
    expect_same_texts(run(models, requests), expected);
  }
}

// Eight of them, of which those that draw come first or last: heads that go through groups of sequences draw in one.
TEST_P(GraphsOfCycles, TellNotWhoDraws) {
  Models models = open_pair(GetParam(), {.max_sequences = 8, .max_positions = kMixedPositions});
  for (const bool first_half_draws : {true, false}) {
    std::vector<TokenRequest> requests;
    for (uint32_t i = 0; i < 8; ++i) {
      requests.push_back({.prompt_ids = card_prompt(80 + i, 8),
                          .max_tokens = 30,
                          .width = models.trained_width(),
                          .sampling = greedy_or_drawn((i < 4) == first_half_draws ? 1 : 0)});
    }
    const std::vector<TokenResult> expected = plain_texts(GetParam(), requests);
    expect_same_texts(run(models, requests), expected);
    expect_same_texts(run(models, requests), expected);
  }
}

// More shapes than there may be graphs: the oldest go, and are made anew.
TEST(GraphsOfManyShapes, ReplaceTheOldest) {
  Models models = open_pair("Dflash", {.max_sequences = 2, .max_positions = kMixedPositions});
  std::vector<TokenRequest> requests{{.prompt_ids = card_prompt(6, 7), .max_tokens = 24},
                                     {.prompt_ids = card_prompt(7, 7), .max_tokens = 24}};
  const std::vector<TokenResult> expected = plain_texts("Dflash", requests);
  int64_t captured = 0;
  for (int round = 0; round < 2; ++round) {
    for (int32_t widths = 0; widths < 9 * 9; ++widths) {
      requests[0].width = 1 + widths / 9;
      requests[1].width = 1 + widths % 9;
      expect_same_texts(run(models, requests), expected);
    }
    const int64_t captured_now = models.engine->num_graphs() - captured;
    captured += captured_now;
    EXPECT_GT(captured_now, round == 0 ? static_cast<int64_t>(CycleGraphs::kMostGraphs) : 0);
  }
}

}  // namespace
}  // namespace blockdraft::test
