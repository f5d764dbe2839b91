// The target's choices. The head is the identity, so that hidden rows are logits.

#include "engine/token_chooser.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "property_sampling/identity_head.h"
#include "property_sampling/laws.h"
#include "support/op_context.h"

namespace blockdraft::test {
namespace {

constexpr int32_t kCount = 10;
using Rows = std::vector<std::vector<float>>;

struct Choices {
  std::vector<int32_t> ids;
  std::vector<int32_t> accepted;
};

Choices choose(const std::vector<VerifiedBlock>& blocks, const Rows& logits) {
  static const IdentityHead head(kCount);
  OpContext context(2);
  TokenChooser chooser(head.head(), 64);
  std::vector<float> hidden;
  for (const auto& row : logits) hidden.insert(hidden.end(), row.begin(), row.end());
  const auto rows = static_cast<int64_t>(logits.size());
  Choices choices{std::vector<int32_t>(logits.size()), std::vector<int32_t>(blocks.size(), 9)};
  chooser.choose(context, view_f32(hidden.data(), Shape{rows, kCount}), blocks, choices.ids, choices.accepted);
  EXPECT_TRUE(chooser.settle(blocks, choices.ids, choices.accepted));
  return choices;
}

Sequence sequence_of(const std::vector<int32_t>& prompt, const std::vector<int32_t>& text, SamplingParams params) {
  Sequence sequence;
  sequence.input.prompt_ids = prompt;
  sequence.input.sampling = std::move(params);
  sequence.tokens = prompt;
  if (sequence.input.sampling.penalizes()) sequence.history = TokenHistory(prompt, kCount, 20);
  sequence.max_length = 100;
  sequence.append(text, {});
  return sequence;
}

Rows random_rows(uint32_t seed, size_t count) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal(0.0f, 1.0f);
  Rows rows(count, std::vector<float>(kCount));
  for (auto& row : rows) {
    for (float& logit : row) logit = normal(generator);
  }
  return rows;
}

// Row j of a block is chosen as plain decoding chooses once the drafts before it are text.
TEST(TokenChooser, ChoosesRowsAsPlainDecodingDoes) {
  const std::vector<SamplingParams> all = {
      {},
      {.temperature = 0.8f, .seed = 5},
      {.temperature = 1.0f, .top_k = 4, .top_p = 0.9f, .min_p = 0.05f, .seed = 6},
      {.repetition_penalty = 1.6f, .presence_penalty = 0.7f, .frequency_penalty = 0.4f},
      {.temperature = 0.8f,
       .seed = 7,
       .repetition_penalty = 1.4f,
       .presence_penalty = 0.9f,
       .frequency_penalty = 0.3f,
       .logit_bias = {{2, 1.0f}}},
      {.logit_bias = {{2, 5.0f}}},
  };
  const std::vector<int32_t> drafts = {3, 3, 8, 1};
  for (uint32_t trial = 0; trial < 20; ++trial) {
    const Rows logits = random_rows(trial, all.size() * (drafts.size() + 1));
    std::vector<Sequence> sequences;
    for (const SamplingParams& params : all) sequences.push_back(sequence_of({1, 2, 2}, {8, 8}, params));
    std::vector<VerifiedBlock> blocks;
    for (Sequence& sequence : sequences) blocks.push_back({.sequence = &sequence, .drafts = drafts});
    const Choices together = choose(blocks, logits);
    size_t row = 0;
    for (size_t s = 0; s < all.size(); ++s) {
      for (size_t j = 0; j <= drafts.size(); ++j, ++row) {
        std::vector<int32_t> text = {8, 8};
        text.insert(text.end(), drafts.begin(), drafts.begin() + static_cast<int64_t>(j));
        Sequence plain = sequence_of({1, 2, 2}, text, all[s]);
        const Choices alone = choose({{.sequence = &plain}}, {logits[row]});
        EXPECT_EQ(together.ids[row], alone.ids[0]) << "sampling " << s << ", row " << j;
      }
      const size_t kept = all[s].penalizes() ? 3 : 0;
      EXPECT_EQ(sequences[s].history.distinct_ids().size(), kept) << "drafts are taken back";
    }
  }
}

TEST(TokenChooser, FieldFault15_PenalizesByDraftsBeforeTheRowInItsOwnBlock) {
  // Every row prefers 4, then 5, then 6: with a penalty, each id once.
  const std::vector<float> row = {0, 0, 0, 0, 3, 2.9f, 2.8f, 0, 0, 0};
  Sequence sequence = sequence_of({1}, {9}, {.presence_penalty = 1.0f});
  const std::vector<int32_t> drafts = {4, 5, 4, 6};
  const Choices choices = choose({{.sequence = &sequence, .drafts = drafts}}, {row, row, row, row, row});
  EXPECT_EQ(choices.ids, (std::vector<int32_t>{4, 5, 6, 6, 4}));
  EXPECT_EQ(choices.accepted, (std::vector<int32_t>{2}));  // the override at the third draft is a rejection
}

TEST(TokenChooser, GreedyRowsAreUntouchedByTheirCompany) {
  const Rows logits = random_rows(3, 150);  // more than one group of rows
  Sequence greedy = sequence_of({1}, {2}, {});
  Sequence other = sequence_of({1}, {2}, {.temperature = 1.0f, .repetition_penalty = 1.5f});
  const std::vector<int32_t> drafts(74, 3);
  const Choices choices =
      choose({{.sequence = &other, .drafts = drafts}, {.sequence = &greedy, .drafts = drafts}}, logits);
  for (size_t i = 75; i < 150; ++i) {
    EXPECT_EQ(choices.ids[i], std::ranges::max_element(logits[i]) - logits[i].begin());
  }
}

TEST(TokenChooser, RefusesWhatIsNoNumber) {
  static const IdentityHead head(kCount);
  OpContext context;
  for (const SamplingParams& params : {SamplingParams{}, SamplingParams{.temperature = 1.0f, .top_p = 0.5f},
                                       SamplingParams{.temperature = 1.0f, .acceptance = AcceptanceRule::ratio}}) {
    TokenChooser chooser(head.head(), 4);
    Sequence sequence = sequence_of({1}, {2}, params);
    std::vector<float> hidden(kCount, NAN);
    const VerifiedBlock block{.sequence = &sequence};
    int32_t choice = 0;
    int32_t accepted = 0;
    chooser.choose(context, view_f32(hidden.data(), Shape{1, kCount}), {&block, 1}, {&choice, 1}, {&accepted, 1});
    const Status status = chooser.settle({&block, 1}, {&choice, 1}, {&accepted, 1});
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, Code::numeric);
  }
}

// With every way to draw, the first token of a text has the law of the target's row, and so has the second.
TEST(TokenChooser, TokensHaveTheLawOfTheirRows) {
  const Rows logits = random_rows(17, 2);
  for (const float temperature : {0.3f, 1.0f, 2.0f}) {
    const Law law = softmax(logits[0], static_cast<double>(temperature));
    const Law next = softmax(logits[1], static_cast<double>(temperature));
    for (const AcceptanceRule rule : {AcceptanceRule::coupled, AcceptanceRule::ratio}) {
      std::vector<int64_t> counts(kCount);
      std::vector<int64_t> next_counts(kCount);
      const auto draft = static_cast<int32_t>(std::ranges::max_element(law) - law.begin());
      const ProbabilityRow certain;
      for (uint64_t seed = 0; seed < 8000; ++seed) {
        Sequence sequence = sequence_of({1}, {2}, {.temperature = temperature, .seed = seed, .acceptance = rule});
        const Choices choices =
            choose({{.sequence = &sequence, .drafts = {&draft, 1}, .laws = {&certain, 1}}}, {logits[0], logits[1]});
        ++counts[static_cast<size_t>(choices.ids[0])];
        EXPECT_EQ(choices.accepted[0], choices.ids[0] == draft ? 1 : 0);
        if (choices.accepted[0] == 1) ++next_counts[static_cast<size_t>(choices.ids[1])];
      }
      expect_law(counts, law);
      expect_law(next_counts, next);
    }
  }
}

}  // namespace
}  // namespace blockdraft::test
