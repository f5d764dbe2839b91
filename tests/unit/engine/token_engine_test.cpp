#include "engine/token_engine.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/decoder.h"
#include "support/draft_sources.h"
#include "support/expect_error.h"
#include "support/take.h"
#include "support/tiny_models.h"

namespace blockdraft::test {
namespace {

constexpr int64_t kVocab = 160;

class TokenEngineTest : public testing::Test {
 protected:
  void SetUp() override {
    tiny_target({}, 1).write(folder_ / "target");
    tiny_drafter({}, 2).write(folder_ / "drafter");
  }
  Decoder drafted(int32_t max_sequences = 2) {
    return {
        folder_ / "target",
        folder_ / "drafter",
        {.threads = 1, .max_sequences = max_sequences, .max_positions = 64, .max_width = 15, .num_choices = kVocab}};
  }
  TempDir folder_;
};

TEST(MaxTargetRows, CoverAPassOfThePromptAndACycle) {
  EXPECT_EQ(max_target_rows({.max_sequences = 1, .max_width = 0}), kPrefillRows);
  EXPECT_EQ(max_target_rows({.max_sequences = 16, .max_width = 15}), 256);
  EXPECT_EQ(max_target_rows({.max_sequences = 17, .max_width = 15}), 272);
}

TEST_F(TokenEngineTest, RequestsAreChecked) {
  Decoder decoder = drafted();
  const auto refused = [&](TokenRequest request, Code code, std::initializer_list<std::string_view> parts) {
    const TokenRequest sound{.prompt_ids = {1}, .max_tokens = 1, .width = 1};
    expect_error(decoder.engine().run(std::vector<TokenRequest>{sound, std::move(request)}), code, parts);
  };
  refused({.max_tokens = 1}, Code::invalid_argument, {"request 1", "no tokens"});
  refused({.prompt_ids = {1}, .max_tokens = -1}, Code::invalid_argument,
          {"request 1", "max_tokens is -1", "at least 0"});
  refused({.prompt_ids = {1}, .max_tokens = 1, .width = 16}, Code::invalid_argument, {"width is 16", "0 to 15"});
  refused({.prompt_ids = {1}, .max_tokens = 1, .width = -1}, Code::invalid_argument, {"width is -1", "0 to 15"});
  refused({.prompt_ids = {1, 160}, .max_tokens = 1}, Code::invalid_argument, {"prompt id is 160", "0 to 159"});
  refused({.prompt_ids = {-1}, .max_tokens = 1}, Code::invalid_argument, {"prompt id is -1", "0 to 159"});
  refused({.prompt_ids = std::vector<int32_t>(65, 1), .max_tokens = 1}, Code::limit_exceeded,
          {"request 1", "65 tokens", "64 positions"});
  EXPECT_EQ(decoder.run(TokenRequest{.prompt_ids = {1, 159}, .max_tokens = 5, .width = 15}).ids.size(), 5u);
}

TEST_F(TokenEngineTest, NothingIsAskedNothingIsAnswered) {
  Decoder decoder = drafted();
  EXPECT_TRUE(decoder.run(std::vector<TokenRequest>{}).empty());
  const TokenResult result = decoder.run(TokenRequest{.prompt_ids = {1}, .max_tokens = 0});
  EXPECT_TRUE(result.ids.empty());
  EXPECT_TRUE(result.cycles.empty());
  EXPECT_EQ(result.end, EndReason::at_length);
}

TEST_F(TokenEngineTest, WithoutADrafterThereIsNoWidth) {
  Decoder decoder(folder_ / "target", {.threads = 1, .max_positions = 64});
  const TokenRequest request{.prompt_ids = {1}, .max_tokens = 4, .width = 1};
  expect_error(decoder.engine().run({&request, 1}), Code::invalid_argument, {"width is 1", "0 to 0"});
}

TEST_F(TokenEngineTest, TellsOfItsCyclesAndTimes) {
  Decoder decoder = drafted();
  const std::vector<TokenResult> results =
      decoder.run({{.prompt_ids = {1, 2, 3}, .max_tokens = 20, .width = 6}, {.prompt_ids = {4}, .max_tokens = 3}});
  for (const TokenResult& result : results) {
    size_t produced = 1;  // the first token comes out of the prompt
    for (const SequenceCycle& cycle : result.cycles) {
      EXPECT_GE(cycle.accepted, 0);
      EXPECT_LE(cycle.accepted, cycle.width);
      EXPECT_EQ(cycle.produced, cycle.accepted + 1);
      produced += static_cast<size_t>(cycle.produced);
    }
    EXPECT_EQ(produced, result.ids.size());
  }
  // The longer text is in every cycle of the run.
  const RunTimes& times = decoder.engine().times();
  const size_t num_cycles = results[0].cycles.size();
  EXPECT_EQ(results[1].cycles.size(), 2u);
  for (const std::vector<float>* part : {&times.context_us, &times.propose_us, &times.verify_us, &times.accept_us}) {
    EXPECT_EQ(part->size(), num_cycles);
    for (const float time_us : *part) EXPECT_GE(time_us, 0.0f);
  }
  EXPECT_GT(times.first_token_s, 0.0);
  EXPECT_GE(times.total_s, times.prefill_s);
  EXPECT_GE(times.prefill_s, times.first_token_s * 0.5);
}

TEST_F(TokenEngineTest, PlansItsMemory) {
  Decoder decoder = drafted(3);
  std::vector<std::string> names;
  for (const PlanItem& item : decoder.engine().memory_plan().items()) {
    names.push_back(item.name);
    EXPECT_GT(item.size_bytes, 0u) << item.name;
  }
  EXPECT_EQ(names, (std::vector<std::string>{"target pages", "context pages", "taps", "scratch"}));
  EXPECT_EQ(decoder.engine().memory_plan().target_pages, decoder.target().state_bytes());
  EXPECT_EQ(decoder.engine().num_threads(), 1);
}

TEST_F(TokenEngineTest, PaddingIsNeverEmitted) {
  Decoder decoder(folder_ / "target", {.threads = 1, .max_positions = 64, .num_choices = 3});
  for (const int32_t id : decoder.run(TokenRequest{.prompt_ids = {100, 5}, .max_tokens = 40}).ids) EXPECT_LT(id, 3);
}

TEST_F(TokenEngineTest, LogitsThatAreNotNumbersAreAnErrorAndTheEngineGoesOn) {
  ModelFiles files = tiny_target({}, 1);
  // Only the embedding of token 7 is spoiled.
  std::vector<float> table = values_of_bf16(files.tensor("model.embed_tokens.weight"));
  for (size_t i = 7 * 64; i < 8 * 64; ++i) table[i] = std::nanf("");
  files.tensor("model.embed_tokens.weight") = f32_tensor("model.embed_tokens.weight", {kVocab, 64}, table);
  files.write(folder_ / "spoiled");
  const TokenEngineOptions options{.threads = 1, .max_sequences = 2, .max_positions = 64, .max_width = 15};
  class Sevens : public RandomDrafts {
   public:
    using RandomDrafts::RandomDrafts;

   protected:
    void draft(std::span<const int32_t>, int32_t, std::span<int32_t> drafts) override { std::ranges::fill(drafts, 7); }
  };
  Decoder decoder(folder_ / "spoiled", options, [](const Target& target) -> std::unique_ptr<DraftSource> {
    return std::make_unique<Sevens>(target, 15, 1);
  });
  const TokenRequest sound{.prompt_ids = {1, 2}, .max_tokens = 12};
  TokenRequest drafting = sound;
  drafting.width = 4;
  const TokenRequest spoiled{.prompt_ids = {1, 7}, .max_tokens = 12};
  const std::vector<int32_t> expected = decoder.run(sound).ids;
  ASSERT_EQ(expected.size(), 12u);
  ASSERT_EQ(std::ranges::find(expected, 7), expected.end());
  expect_error(decoder.engine().run(std::vector<TokenRequest>{sound, spoiled}), Code::numeric, {"not numbers"});
  // Behind a rejected draft nothing needs to be a number, since plain decoding never gets there.
  for (const TokenResult& result : decoder.run(std::vector<TokenRequest>{drafting, sound, drafting})) {
    EXPECT_EQ(result.ids, expected);
  }
}

// A draft source that fails: the error is its own, and the slots are free again.
TEST_F(TokenEngineTest, ErrorsOfTheDrafterArePassedOn) {
  class Failing : public RandomDrafts {
   public:
    using RandomDrafts::RandomDrafts;
    Status propose(Context& context, std::span<const DraftRequest> requests, const Drafts& drafts) override {
      if (calls_++ == 2) return Error{Code::numeric, "the third proposal"};
      return RandomDrafts::propose(context, requests, drafts);
    }

   private:
    int calls_ = 0;
  };
  Decoder decoder(
      folder_ / "target", {.threads = 1, .max_sequences = 2, .max_positions = 64, .max_width = 15},
      [](const Target& target) -> std::unique_ptr<DraftSource> { return std::make_unique<Failing>(target, 15, 1); });
  const TokenRequest request{.prompt_ids = {1, 2}, .max_tokens = 40, .width = 2};
  expect_error(decoder.engine().run(std::vector<TokenRequest>(3, request)), Code::numeric, {"the third proposal"});
  for (const TokenResult& result : decoder.run(std::vector<TokenRequest>(3, request))) {
    EXPECT_EQ(result.ids.size(), 40u);
  }
}

// Without its law a draft cannot be put to the ratio test; greedy and coupled requests need none.
TEST_F(TokenEngineTest, RatioAcceptanceIsRefusedWhereDraftsHaveNoLaws) {
  Decoder decoder(folder_ / "target", {.threads = 1, .max_positions = 64, .max_width = 15},
                  [](const Target& target) -> std::unique_ptr<DraftSource> {
                    return std::make_unique<RandomDrafts>(target, 15, 1);
                  });
  TokenRequest request{.prompt_ids = {1, 2}, .max_tokens = 8, .width = 4, .sampling = {.temperature = 0.8f}};
  EXPECT_EQ(decoder.run(request).ids.size(), 8u);
  request.sampling.acceptance = AcceptanceRule::ratio;
  const TokenRequest sound{.prompt_ids = {1}, .max_tokens = 1, .on_token = [](int32_t) -> bool {
                             ADD_FAILURE() << "nothing is decoded";
                             return false;
                           }};
  expect_error(decoder.engine().run(std::vector<TokenRequest>{sound, request}), Code::mismatch,
               {"request 1", "ratio", "law", "coupled"});
  TokenRequest plain = request;
  plain.width = 0;
  EXPECT_EQ(decoder.run(plain).ids.size(), 8u);
  request.sampling.acceptance = AcceptanceRule::coupled;
  request.expects_acceptance = true;
  expect_error(decoder.engine().run({&request, 1}), Code::mismatch, {"expected acceptance", "law"});
  request.sampling.temperature = 0.0f;
  expect_error(decoder.engine().run({&request, 1}), Code::invalid_argument, {"temperature is 0", "1e-05 or more"});
  request.expects_acceptance = false;
  EXPECT_EQ(decoder.run(request).ids.size(), 8u);
}

TEST_F(TokenEngineTest, ALawLeftOutIsAnError) {
  class Forgetful : public RandomDrafts {
   public:
    using RandomDrafts::RandomDrafts;
    size_t law_bytes(int64_t drafts) const override { return static_cast<size_t>(drafts) * 64; }
  };
  Decoder decoder(
      folder_ / "target", {.threads = 1, .max_positions = 64, .max_width = 15},
      [](const Target& target) -> std::unique_ptr<DraftSource> { return std::make_unique<Forgetful>(target, 15, 1); });
  TokenRequest request{.prompt_ids = {1, 2}, .max_tokens = 8, .width = 4, .sampling = {.temperature = 0.8f}};
  EXPECT_EQ(decoder.run(request).ids.size(), 8u);
  request.sampling.acceptance = AcceptanceRule::ratio;
  expect_error(decoder.engine().run({&request, 1}), Code::mismatch, {"draft 0 of 4", "position 2", "law"});
}

TEST_F(TokenEngineTest, AWidthThatTheDrafterDoesNotHaveIsABug) {
  EXPECT_DEATH(Decoder(folder_ / "target", {.threads = 1, .max_positions = 64, .max_width = 1}), "max_width");
}

}  // namespace
}  // namespace blockdraft::test
