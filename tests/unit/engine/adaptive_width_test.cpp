// Widths that adapt and acceptance by a pattern, in whole runs of the engine.

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "support/decoder.h"
#include "support/draft_sources.h"
#include "support/expect_error.h"
#include "support/temp_dir.h"
#include "support/tiny_models.h"

namespace blockdraft::test {
namespace {

constexpr int32_t kWidth = 15;
constexpr int64_t kTokens = 200;  // several times what waits at most

class AdaptiveWidthTest : public testing::Test {
 protected:
  void SetUp() override {
    tiny_target({}, 1).write(folder_ / "target");
    tiny_drafter({}, 2).write(folder_ / "drafter");
  }
  TokenEngineOptions options(int32_t max_sequences = 1, int64_t max_positions = 400) const {
    return {.threads = 1,
            .max_sequences = max_sequences,
            .max_positions = max_positions,
            .max_width = kWidth,
            .num_choices = 160};
  }
  std::vector<int32_t> plain(TokenRequest request) {
    request.width = 0;
    TokenEngineOptions without = options();
    without.max_width = 0;
    Decoder decoder(folder_ / "target", without);
    return decoder.run(request).ids;
  }
  TempDir folder_;
};

TokenRequest adaptive(std::vector<int32_t> prompt, float temperature = 0.0f) {
  return {.prompt_ids = std::move(prompt),
          .max_tokens = kTokens,
          .width = kWidth,
          .adapts_width = true,
          .sampling = {.temperature = temperature, .seed = 3}};
}

int64_t cycles_of_width_0(const TokenResult& result) {
  return std::ranges::count_if(result.cycles, [](const SequenceCycle& cycle) { return cycle.asked == 0; });
}

// The draft source checks that it is given the taps of every position, in order and once, before it drafts.
TEST_F(AdaptiveWidthTest, DraftsThatAreNeverRightAreGivenUpAndTheTextStays) {
  Decoder decoder(folder_ / "target", options(2), [](const Target& target) -> std::unique_ptr<DraftSource> {
    return std::make_unique<RandomDrafts>(target, kWidth, 1);
  });
  const TokenRequest first = adaptive({1, 2, 3});
  const TokenRequest second = adaptive({9}, 0.8f);
  TokenRequest fixed = first;
  fixed.adapts_width = false;
  fixed.width = 3;
  const std::vector<TokenRequest> requests = {first, second, fixed, second, first};
  const std::vector<TokenResult> results = decoder.run(requests);
  const std::vector<int32_t> greedy = plain(first);
  const std::vector<int32_t> drawn = plain(second);
  for (size_t i = 0; i < results.size(); ++i) {
    EXPECT_EQ(results[i].ids, requests[i].sampling.draws() ? drawn : greedy) << "request " << i;
  }
  EXPECT_GT(cycles_of_width_0(results[4]), kTokens / 2);
  EXPECT_EQ(cycles_of_width_0(results[2]), 1) << "only the end of the text";
}

TEST_F(AdaptiveWidthTest, ARealDrafterGivesTheTextOfPlainDecoding) {
  Decoder decoder(folder_ / "target", folder_ / "drafter", options(3));
  const std::vector<TokenRequest> requests = {adaptive({1, 2, 3}), adaptive({4, 5}), adaptive({6}, 0.7f),
                                              adaptive(std::vector<int32_t>(150, 7))};
  for (int run = 0; run < 2; ++run) {
    const std::vector<TokenResult> results = decoder.run(requests);
    for (size_t i = 0; i < requests.size(); ++i) EXPECT_EQ(results[i].ids, plain(requests[i])) << "request " << i;
  }
}

TEST_F(AdaptiveWidthTest, DraftsThatAreAlwaysRightAreAskedFor) {
  const std::vector<int32_t> prompt = {1, 2, 3};
  std::vector<int32_t> text = prompt;
  TokenRequest longer = adaptive(prompt);
  longer.max_tokens = 380;  // what the trial decodes of it, too
  const std::vector<int32_t> generated = plain(longer);
  text.insert(text.end(), generated.begin(), generated.end());
  Decoder decoder(folder_ / "target", options(), [&](const Target& target) -> std::unique_ptr<DraftSource> {
    return std::make_unique<ScriptedDrafts>(target, kWidth, PlainTexts{text}, std::vector<int32_t>{kWidth + 1});
  });
  const TokenResult result = decoder.run(adaptive(prompt));
  EXPECT_EQ(result.ids, std::vector<int32_t>(generated.begin(), generated.begin() + kTokens));
  EXPECT_LT(static_cast<int64_t>(result.cycles.size()), kTokens / 2);
}

// Nothing of the trial remains: neither in the counts nor in the slots, whatever room there is.
TEST_F(AdaptiveWidthTest, TheTrialLeavesNoTrace) {
  for (const int64_t positions : {1, 2, 3, 4, 5, 17, 20, 80}) {
    Decoder decoder(folder_ / "target", folder_ / "drafter", options(2, positions));
    const std::vector<TokenResult> results = decoder.run({adaptive({1}), adaptive({1}), adaptive({2})});
    int64_t drafts = 0;
    for (const TokenResult& result : results) {
      EXPECT_EQ(std::ssize(result.ids), std::min(kTokens, positions - 1));
      for (const SequenceCycle& cycle : result.cycles) drafts += cycle.width;
    }
    EXPECT_EQ(decoder.engine().draft_counts().verified, drafts);
    EXPECT_GT(decoder.engine().memory_plan().waiting_taps, 0u);
  }
}

TEST_F(AdaptiveWidthTest, APatternTakesThePlaceOfTheComparison) {
  Decoder decoder(folder_ / "target", folder_ / "drafter", options());
  decoder.engine().set_accept_pattern(AcceptPattern({1.0f, 1.0f, 0.0f}));
  TokenRequest request = adaptive({1, 2, 3});
  request.adapts_width = false;
  request.width = 4;
  request.max_tokens = 31;  // the prompt's own token and ten cycles
  const TokenResult result = decoder.run(request);
  ASSERT_EQ(result.cycles.size(), 10u);
  for (const SequenceCycle& cycle : result.cycles) EXPECT_EQ(cycle.produced, 3);
  EXPECT_EQ(decoder.engine().draft_counts().cycles, 0) << "nothing is said of the drafter";
  EXPECT_EQ(std::ssize(decoder.run(adaptive({1, 2, 3})).ids), kTokens);
}

}  // namespace
}  // namespace blockdraft::test
