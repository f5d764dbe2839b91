#include "verify/penalties.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace blockdraft {
namespace {

using ::testing::ElementsAre;

TEST(TokenHistory, CountsWhatIsGeneratedAndListsPromptIdsToo) {
  const std::vector<int32_t> prompt = {4, 2, 4};
  TokenHistory history(prompt, 10, 5);
  EXPECT_THAT(history.distinct_ids(), ElementsAre(4, 2));
  EXPECT_EQ(history.generated(4), 0);
  for (const int32_t id : {7, 4, 7}) history.add(id);
  EXPECT_THAT(history.distinct_ids(), ElementsAre(4, 2, 7));
  EXPECT_EQ(history.generated(7), 2);
  EXPECT_EQ(history.generated(4), 1);
  for (const int32_t id : {7, 4, 7}) history.take_back(id);
  EXPECT_THAT(history.distinct_ids(), ElementsAre(4, 2));
  EXPECT_EQ(history.generated(7), 0);
  EXPECT_FALSE(TokenHistory().is_kept());
}

TEST(AdjustLogits, FollowsTheFormulas) {
  const std::vector<int32_t> prompt = {0, 1};
  TokenHistory history(prompt, 6, 8);
  for (const int32_t id : {1, 2, 2}) history.add(id);
  std::vector<float> logits = {2.0f, -2.0f, 3.0f, 4.0f, -1.0f, 5.0f};
  adjust_logits(logits.data(),
                {.repetition_penalty = 2.0f,
                 .presence_penalty = 0.25f,
                 .frequency_penalty = 0.5f,
                 .logit_bias = {{2, 1.0f}, {4, -3.0f}}},
                history);
  // Prompt only: repetition. Generated: bias, repetition, frequency, presence. The others: bias.
  EXPECT_THAT(logits, ElementsAre(1.0f, -4.0f - 0.5f - 0.25f, 2.0f - 1.0f - 0.25f, 4.0f, -4.0f, 5.0f));
}

}  // namespace
}  // namespace blockdraft
