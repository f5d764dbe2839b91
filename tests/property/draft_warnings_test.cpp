// What an engine counts of its drafts, and what it concludes, for drafters that are wrong in a known way.

#include <algorithm>
#include <memory>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "property/pairs.h"

namespace blockdraft::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr int64_t kMaxTokens = 70;
constexpr int32_t kMaskId = 159;

const PlainTexts& texts() {
  static const PlainTexts all =
      plain_texts(TinyPair::get().target(), {random_prompt(51, 9), random_prompt(52, 4)}, kMaxTokens + kTinyWidth);
  return all;
}

// Never says anything but its mask id.
class MaskDrafts : public WatchingDrafts {
 public:
  explicit MaskDrafts(const Target& target) : WatchingDrafts(target, kTinyWidth) {}
  int32_t mask_id() const override { return kMaskId; }

 protected:
  void draft(std::span<const int32_t>, int32_t, std::span<int32_t> drafts) override {
    std::ranges::fill(drafts, kMaskId);
  }
};

struct Outcome {
  DraftCounts counts;
  std::vector<SequenceCycle> cycles;
};

Outcome decode(const MakeDrafts& make_drafts, int32_t width, int64_t max_tokens = kMaxTokens) {
  Decoder decoder(TinyPair::get().target(),
                  {.threads = 1, .max_sequences = 2, .max_positions = 160, .max_width = kTinyWidth}, make_drafts);
  std::vector<TokenRequest> requests;
  for (const std::vector<int32_t>& text : texts()) {
    requests.push_back(
        {.prompt_ids = {text.begin(), text.end() - kMaxTokens - kTinyWidth}, .max_tokens = max_tokens, .width = width});
  }
  Outcome outcome;
  for (const TokenResult& result : decoder.run(requests)) {
    outcome.cycles.insert(outcome.cycles.end(), result.cycles.begin(), result.cycles.end());
  }
  outcome.counts = decoder.engine().draft_counts();
  return outcome;
}

MakeDrafts script(std::vector<int32_t> accepts) {
  return [accepts](const Target& target) -> std::unique_ptr<DraftSource> {
    return std::make_unique<ScriptedDrafts>(target, kTinyWidth, texts(), accepts);
  };
}

TEST(DraftWarnings, DraftsThatAreNeverAccepted) {
  const Outcome outcome = decode(
      [](const Target& target) -> std::unique_ptr<DraftSource> {
        return std::make_unique<AlwaysWrongDrafts>(target, kTinyWidth, texts(), 3);
      },
      5);
  EXPECT_EQ(outcome.counts.accepted, 0);
  EXPECT_THAT(draft_warnings(outcome.counts), ElementsAre(HasSubstr("was accepted")));
}

TEST(DraftWarnings, DraftsThatAreAlwaysAccepted) {
  const Outcome outcome = decode(script({kTinyWidth}), 1);
  EXPECT_EQ(outcome.counts.accepted, outcome.counts.verified);
  EXPECT_THAT(draft_warnings(outcome.counts), ElementsAre(HasSubstr("were accepted")));
}

TEST(DraftWarnings, DraftsThatAreTheMaskId) {
  for (const std::vector<int32_t>& text : texts()) {
    ASSERT_EQ(std::count(text.begin(), text.end(), kMaskId), 0) << "the target itself says the mask id";
  }
  const Outcome outcome = decode(
      [](const Target& target) -> std::unique_ptr<DraftSource> { return std::make_unique<MaskDrafts>(target); }, 4);
  EXPECT_EQ(outcome.counts.masks, outcome.counts.verified);
  EXPECT_THAT(draft_warnings(outcome.counts), ElementsAre(HasSubstr("were the mask id"), HasSubstr("was accepted")));
}

TEST(DraftWarnings, NoneForDraftsThatAreSometimesRight) {
  const Outcome outcome = decode(script({0, 3, 1}), 4);
  EXPECT_GE(outcome.counts.cycles, kMinCyclesToJudge);
  EXPECT_THAT(draft_warnings(outcome.counts), IsEmpty());
}

TEST(DraftWarnings, NoneForPlainDecodingAndShortTexts) {
  EXPECT_EQ(decode(script({0}), 0).counts.cycles, 0);
  const Outcome outcome = decode(script({0}), 2, 10);
  EXPECT_EQ(outcome.counts.accepted, 0);
  EXPECT_GT(outcome.counts.verified, 0);
  EXPECT_THAT(draft_warnings(outcome.counts), IsEmpty());
}

TEST(DraftCounts, AreTheSumsOfTheCycles) {
  const Outcome outcome = decode(script({0, 3, 7, 1}), 6);
  DraftCounts sums;
  for (const SequenceCycle& cycle : outcome.cycles) {
    if (cycle.width > 0) ++sums.cycles;
    sums.verified += cycle.width;
    sums.accepted += cycle.accepted;
  }
  EXPECT_EQ(outcome.counts.cycles, sums.cycles);
  EXPECT_EQ(outcome.counts.verified, sums.verified);
  EXPECT_EQ(outcome.counts.accepted, sums.accepted);
}

}  // namespace
}  // namespace blockdraft::test
