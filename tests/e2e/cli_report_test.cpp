#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "cli/check_report.h"
#include "cli/decode.h"
#include "cli/report.h"

namespace blockdraft {
namespace {

using testing::DoubleEq;
using testing::ElementsAre;
using testing::HasSubstr;

Generation text_of(std::vector<int32_t> ids) { return {.ids = std::move(ids)}; }

Tokenizer demo_tokenizer() {
  return std::move(Tokenizer::open(std::string(BLOCKDRAFT_SOURCE_DIR) + "/demo/pycode-14m")).value();
}

TEST(Acceptance, CountsShortenedCyclesOnlyInTheOverallLength) {
  AcceptanceTotals totals(3);
  totals.add({.cycles = {{3, 3, 4, 3}, {3, 1, 2, 3}, {3, 0, 1, 3}, {1, 1, 2, 1}}});
  EXPECT_DOUBLE_EQ(totals.length().value(), 7.0 / 3);
  EXPECT_DOUBLE_EQ(totals.length_all().value(), 9.0 / 4);
  EXPECT_THAT(totals.by_position(), ElementsAre(DoubleEq(3.0 / 4), DoubleEq(1.0 / 3), DoubleEq(1.0 / 3)));
  EXPECT_EQ(totals.cycles(), 4);
  EXPECT_EQ(totals.drafted(), 10);
  EXPECT_EQ(totals.accepted(), 5);
}

TEST(Acceptance, CountsDroppedDraftsAsAskedForButNotAsDrafted) {
  AcceptanceTotals totals(3);
  totals.add({.cycles = {{1, 1, 2, 3}, {0, 0, 1, 3}, {2, 1, 2, 2}}});
  EXPECT_DOUBLE_EQ(totals.length().value(), 3.0 / 2);
  EXPECT_EQ(totals.drafted(), 3);
  EXPECT_THAT(totals.by_position(), ElementsAre(DoubleEq(1), DoubleEq(0)));
}

TEST(Acceptance, OfEachDraft) {
  AcceptanceTotals totals(3);
  totals.add({.cycles = {{3, 3, 4, 3}, {3, 1, 2, 3}, {3, 0, 1, 3}, {1, 1, 2, 3}, {0, 0, 1, 0}}});
  ASSERT_EQ(totals.by_draft().size(), 3u);
  const auto counts = [&](size_t j) {
    const DraftAcceptance& draft = totals.by_draft()[j];
    return std::vector<int64_t>{draft.verified, draft.reached, draft.accepted};
  };
  EXPECT_THAT(counts(0), ElementsAre(4, 4, 3));
  EXPECT_THAT(counts(1),
              ElementsAre(3, 2, 1));  // the cycle of width 1 accepted all that came before, but verified none
  EXPECT_THAT(counts(2), ElementsAre(3, 1, 1));
}

TEST(Acceptance, ByThePositionOfTheAnchor) {
  AcceptanceTotals totals(2);
  // Anchors at 14, 17, 18, 20; the last cycle is not of full width. In the second text at 0 and 1.
  totals.add({.prompt_tokens = 14, .cycles = {{2, 2, 3, 2}, {2, 0, 1, 2}, {2, 1, 2, 2}, {1, 1, 2, 1}}});
  totals.add({.prompt_tokens = 0, .cycles = {{2, 0, 1, 2}, {2, 2, 3, 2}}});
  const std::vector<DepthAcceptance> depths = totals.by_depth();
  ASSERT_EQ(depths.size(), 4u);
  const auto numbers = [](const DepthAcceptance& depth) {
    return std::vector<int64_t>{depth.first_position, depth.last_position, depth.cycles, depth.produced};
  };
  EXPECT_THAT(numbers(depths[0]), ElementsAre(0, 0, 1, 1));
  EXPECT_THAT(numbers(depths[1]), ElementsAre(1, 1, 1, 3));
  EXPECT_THAT(numbers(depths[2]), ElementsAre(8, 15, 1, 3));
  EXPECT_THAT(numbers(depths[3]), ElementsAre(16, 31, 2, 3));
  const Json json = json_by_depth(totals);
  EXPECT_EQ(json[3]["first_position"], 16);
  EXPECT_EQ(json[3]["acceptance_length"], 1.5);
  EXPECT_EQ(acceptance_tables(totals),
            "draft  verified  accepted  share  where it was reached\n"
            "1             6         4  0.667                 0.667\n"
            "2             5         2  0.400                 0.667\n"
            "anchor at  passes  tokens a pass\n"
            "0 to 0          1           1.00\n"
            "1 to 1          1           3.00\n"
            "8 to 15         1           3.00\n"
            "16 to 31        2           1.50\n");
}

TEST(Acceptance, PlainDecodingGivesOneTokenAPass) {
  AcceptanceTotals totals(0);
  totals.add({.cycles = {{0, 0, 1}, {0, 0, 1}}});
  EXPECT_DOUBLE_EQ(totals.length().value(), 1.0);
  EXPECT_TRUE(totals.by_position().empty());
  EXPECT_EQ(acceptance_tables(totals), "");
}

TEST(Acceptance, NothingWithoutCycles) {
  const AcceptanceTotals totals(7);
  EXPECT_FALSE(totals.length().has_value());
  EXPECT_FALSE(totals.length_all().has_value());
  EXPECT_TRUE(totals.by_position().empty());
  EXPECT_TRUE(json_or_null(totals.length()).is_null());
  EXPECT_EQ(decimal(totals.length(), 2), "-");
}

TEST(Compare, FindsTheFirstTokenThatDiffers) {
  EXPECT_FALSE(compare("p", text_of({1, 2}), text_of({1, 2})).has_value());
  const auto other = compare("p", text_of({1, 2, 3}), text_of({1, 5, 3}));
  ASSERT_TRUE(other.has_value());
  EXPECT_EQ(other->prompt, "p");
  EXPECT_EQ(other->token, 1u);
  EXPECT_EQ(other->plain_id, 2);
  EXPECT_EQ(other->drafted_id, 5);
}

TEST(Compare, ATextThatEndsEarlierDiffersToo) {
  const auto shorter = compare("p", text_of({1, 2}), text_of({1}));
  ASSERT_TRUE(shorter.has_value());
  EXPECT_EQ(shorter->token, 1u);
  EXPECT_EQ(shorter->plain_id, 2);
  EXPECT_FALSE(shorter->drafted_id.has_value());
  EXPECT_TRUE(compare("p", text_of({}), text_of({7})).has_value());
}

TEST(CheckReport, AMismatchIsTheVerdict) {
  const Tokenizer tokenizer = demo_tokenizer();
  CheckTotals totals(2);
  totals.prompts = 2;
  totals.tokens = 10;
  totals.mismatches = 1;
  totals.first_divergence = Divergence{"the second", 4, 326, std::nullopt};
  const std::string text = human_check(totals, tokenizer);
  EXPECT_THAT(text, HasSubstr("different: 1 of 2 prompts; first in prompt 'the second' at generated token 4"));
  EXPECT_THAT(text, HasSubstr("plain 326 'def', drafted the end of the text"));
  EXPECT_EQ(text.find("equal"), std::string::npos);

  const Json json = json_check(totals, tokenizer);
  EXPECT_EQ(json["mismatches"], 1);
  EXPECT_EQ(json["first_divergence"]["prompt"], "the second");
  EXPECT_EQ(json["first_divergence"]["plain_id"], 326);
  EXPECT_EQ(json["first_divergence"]["plain_text"], "def");
  EXPECT_TRUE(json["first_divergence"]["drafted_id"].is_null());
}

TEST(CheckReport, SpeedIsTokensOverTheTimeOfTheCalls) {
  CheckTotals totals(1);
  totals.plain_speed.add({.generations = {text_of({1, 2})}, .times = {.total_s = 2}});
  totals.plain_speed.add({.generations = {text_of({1, 2})}, .times = {.total_s = 2}});
  totals.drafted_speed.add({.generations = {text_of({1, 2}), text_of({1, 2})}, .times = {.total_s = 2}});
  EXPECT_DOUBLE_EQ(totals.plain_speed.tokens_per_s(), 1);
  EXPECT_DOUBLE_EQ(totals.speedup(), 2);
}

TEST(NamePrompt, RequestsHaveTheNamesOfTheirPrompts) {
  const std::vector<NamedPrompt> prompts = {{"a", ""}, {"b", ""}};
  const std::vector<Request> requests(2);
  const PromptBatch batch{prompts, requests};
  const auto named = [](const PromptBatch& of, const char* message) {
    return name_prompt(of, {Code::limit_exceeded, message}).message;
  };
  EXPECT_EQ(named(batch, "request 1: too long"), "prompt 'b': too long");
  EXPECT_EQ(named(batch, "request 2: too long"), "request 2: too long");
  EXPECT_EQ(named(batch, "layer 3 is not a number"), "layer 3 is not a number");
  EXPECT_EQ(named(batch.part(0, 1), "layer 3 is not a number"), "prompt 'a': layer 3 is not a number");
}

TEST(Median, OfOddEvenAndNone) {
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({4, 1, 2, 3}), 2.5);
  EXPECT_EQ(median({}), 0);
}

TEST(Table, ColumnsAreCountedInCharacters) { EXPECT_EQ(table({{"é", "1"}, {"ab", "10"}}), "é    1\nab  10\n"); }

}  // namespace
}  // namespace blockdraft
