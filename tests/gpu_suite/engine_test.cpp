// The engine on a card: drafting changes no token, whoever drafts, in every company, in graphs and outside.
#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "gpu_suite/pairs.h"

namespace blockdraft::test {
namespace {

class EngineOnCard : public testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(, EngineOnCard, testing::ValuesIn(pair_names()),
                         [](const auto& suite) { return suite.param; });

// Sequences join and leave; the second run finds the graphs of the first.
TEST_P(EngineOnCard, GivesThePlainTextInEveryBatch) {
  const std::vector<TokenRequest> requests = mixed_requests();
  const std::vector<TokenResult> expected = plain_texts(GetParam(), requests);
  for (const int32_t max_sequences : {1, 3, 8}) {
    SCOPED_TRACE(max_sequences);
    Models models = open_pair(GetParam(), {.max_sequences = max_sequences, .max_positions = kMixedPositions});
    const std::vector<TokenRequest> drafted = with_width(requests, models.trained_width());
    const std::vector<TokenResult> first = run(models, drafted);
    expect_same_texts(first, expected);
    expect_same_texts(run(models, drafted), expected);
    EXPECT_GT(models.engine->num_graphs(), 0);
    EXPECT_GT(drafts_accepted(first), 10) << "the drafter took part";
  }
}

// Every request has a width of its own.
TEST_P(EngineOnCard, GivesThePlainTextAtEveryWidth) {
  std::vector<TokenRequest> requests = mixed_requests();
  const std::vector<TokenResult> expected = plain_texts(GetParam(), requests);
  Models models = open_pair(GetParam(), {.max_sequences = 4, .max_positions = kMixedPositions});
  for (int32_t first = 0; first < 3; ++first) {
    for (size_t i = 0; i < requests.size(); ++i) {
      requests[i].width = (first + 5 * static_cast<int32_t>(i)) % (models.trained_width() + 1);
    }
    expect_same_texts(run(models, requests), expected);
  }
}

// Penalties, bias and ratio acceptance are the CPU's; they wait for the card in the middle of a cycle.
std::vector<TokenRequest> requests_of_the_cpu() {
  std::vector<TokenRequest> requests;
  for (size_t i = 0; i < 3; ++i) {
    requests.push_back({.prompt_ids = card_prompt(50 + static_cast<uint32_t>(i), 9),
                        .max_tokens = 25,
                        .sampling = greedy_or_drawn(i)});
  }
  requests[0].sampling.repetition_penalty = 1.4f;
  requests[1].sampling.presence_penalty = 0.7f;
  requests[1].sampling.frequency_penalty = 0.5f;
  requests[2].sampling.logit_bias = {{10, 3.0f}, {20, -50.0f}};
  return requests;
}

std::vector<TokenRequest> ratio_requests() {
  std::vector<TokenRequest> requests;
  for (const size_t kind : {1u, 2u}) {
    requests.push_back({.prompt_ids = card_prompt(60 + static_cast<uint32_t>(kind), 12),
                        .max_tokens = 25,
                        .sampling = greedy_or_drawn(kind)});
    requests.back().sampling.acceptance = AcceptanceRule::ratio;
  }
  return requests;
}

TEST_P(EngineOnCard, TextsOfThoseThatTheCpuChoosesForAreThePlainOnes) {
  const std::vector<TokenRequest> requests = requests_of_the_cpu();
  const std::vector<TokenResult> expected = plain_texts(GetParam(), requests);
  for (const int32_t max_sequences : {1, 3}) {
    Models models = open_pair(GetParam(), {.max_sequences = max_sequences, .max_positions = kMixedPositions});
    expect_same_texts(run(models, with_width(requests, models.trained_width())), expected);
  }
}

TEST_P(EngineOnCard, RatioAcceptanceGivesTheSameTextAgain) {
  Models models = open_pair(GetParam(), {.max_sequences = 2, .max_positions = kMixedPositions});
  const std::vector<TokenRequest> requests = with_width(ratio_requests(), models.trained_width());
  const std::vector<TokenResult> first = run(models, requests);
  expect_same_texts(run(models, requests), first);
  for (const TokenResult& result : first) EXPECT_EQ(result.ids.size(), 25u);
}

// Every kind in one batch: nobody's text depends on the others.
TEST_P(EngineOnCard, CompanyOfAllKindsChangesNoText) {
  Models alone = open_pair(GetParam(), {.max_positions = kMixedPositions});
  const int32_t width = alone.trained_width();
  std::vector<TokenRequest> requests = with_width(mixed_requests(), width);
  std::vector<TokenRequest> others = with_width(requests_of_the_cpu(), width);
  for (const TokenRequest& request : with_width(ratio_requests(), width)) others.push_back(request);
  // Between the plain ones, from the first batch on.
  for (size_t i = 0; i < others.size(); ++i) requests.insert(requests.begin() + static_cast<int64_t>(2 * i), others[i]);
  const std::vector<TokenResult> expected = run(alone, requests);
  Models models = open_pair(GetParam(), {.max_sequences = 5, .max_positions = kMixedPositions});
  expect_same_texts(run(models, requests), expected);
}

// Of widths that adapt, too; measuring what cycles cost leaves nothing behind.
TEST_P(EngineOnCard, WidthsThatAdaptChangeNoText) {
  std::vector<TokenRequest> requests = mixed_requests();
  for (TokenRequest& request : requests) request.max_tokens = std::min<int64_t>(2 * request.max_tokens, 50);
  const std::vector<TokenResult> expected = plain_texts(GetParam(), requests);
  Models models = open_pair(GetParam(), {.max_sequences = 3, .max_positions = kMixedPositions});
  requests = with_width(requests, models.trained_width());
  for (size_t i = 0; i < requests.size(); ++i) requests[i].adapts_width = i % 4 != 3;
  expect_same_texts(run(models, requests), expected);
  expect_same_texts(run(models, requests), expected);
}

// What is compared above is worth comparing.
TEST(EngineOnCardTexts, AreRichEnoughToTellPositionsApart) {
  const TokenRequest request{.prompt_ids = card_prompt(1, 20), .max_tokens = 100};
  const std::vector<TokenResult> texts = plain_texts("Dflash", {request});
  EXPECT_GE(std::set<int32_t>(texts[0].ids.begin(), texts[0].ids.end()).size(), 20u);
}

TEST(EngineOnCardTexts, DependOnSeedAndFilters) {
  std::vector<TokenRequest> requests(
      4, {.prompt_ids = card_prompt(1, 20), .max_tokens = 30, .sampling = greedy_or_drawn(2)});
  requests[1].sampling.seed += 1;
  requests[2].sampling.top_k = 1;
  requests[3].sampling = {};
  const std::vector<TokenResult> texts = plain_texts("Dflash", requests);
  EXPECT_NE(texts[0].ids, texts[1].ids);
  EXPECT_NE(texts[0].ids, texts[2].ids);
  EXPECT_EQ(texts[2].ids, texts[3].ids) << "one id is left: the text is greedy";
}

TEST(EngineOnCardConfidence, DropsDraftsAndChangesNoText) {
  const std::vector<TokenRequest> requests = mixed_requests();
  const std::vector<TokenResult> expected = plain_texts("DsparkConfidence", requests);
  for (const float threshold : {0.0f, 0.5f, 0.999f}) {
    Models models = open_pair(
        "DsparkConfidence", {.max_sequences = 3, .max_positions = kMixedPositions, .confidence_threshold = threshold});
    const std::vector<TokenResult> found = run(models, with_width(requests, models.trained_width()));
    expect_same_texts(found, expected);
    int64_t dropped = 0;
    for (const TokenResult& result : found) {
      for (const SequenceCycle& cycle : result.cycles) dropped += cycle.asked - cycle.width;
    }
    EXPECT_EQ(dropped > 0, threshold > 0.0f) << threshold;
  }
}

}  // namespace
}  // namespace blockdraft::test
