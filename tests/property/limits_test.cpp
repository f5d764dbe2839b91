// Where texts begin and end: prompt lengths around the passes of a prompt, stop ids and lengths inside a block, the end
// of the positions, and callers who have heard enough.

#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "property/pairs.h"
#include "support/expect_error.h"
#include "support/naive_target.h"
#include "support/tiny_models.h"

namespace blockdraft::test {
namespace {

constexpr int64_t kTextLength = 48;
constexpr int64_t kMaxPositions = 700;

const PlainTexts& texts() {
  static const PlainTexts all = plain_texts(TinyPair::get().target(),
                                            {random_prompt(31, 9), random_prompt(32, 1), random_prompt(33, 255),
                                             random_prompt(34, 256), random_prompt(35, 257), random_prompt(36, 600)},
                                            kTextLength);
  return all;
}

std::vector<int32_t> prompt_of(size_t text) { return {texts()[text].begin(), texts()[text].end() - kTextLength}; }

std::span<const int32_t> generated_of(size_t text) {
  return std::span(texts()[text]).last(static_cast<size_t>(kTextLength));
}

// Drafts that are always accepted, so that every end falls inside a block.
MakeDrafts right_drafts() {
  return [](const Target& target) -> std::unique_ptr<DraftSource> {
    return std::make_unique<ScriptedDrafts>(target, kTinyWidth, texts(), std::vector<int32_t>{kTinyWidth});
  };
}

TokenEngineOptions options(int32_t max_sequences = 1, int64_t max_positions = kMaxPositions) {
  return {.threads = 1, .max_sequences = max_sequences, .max_positions = max_positions, .max_width = kTinyWidth};
}

TEST(PromptLength, FieldFault12_DoesNotMatter) {
  const NaiveTarget naive(TinyPair::get().target());
  const auto expect_plain = [](Decoder& decoder) {
    std::vector<TokenRequest> requests;
    for (size_t i = 0; i < texts().size(); ++i) {
      requests.push_back({.prompt_ids = prompt_of(i), .max_tokens = 24, .width = kTinyWidth});
    }
    const std::vector<TokenResult> results = decoder.run(requests);
    for (size_t i = 0; i < texts().size(); ++i) EXPECT_EQ(results[i].ids, expected_ids(texts()[i], requests[i]));
  };
  Decoder scripted(TinyPair::get().target(), options(2), right_drafts());
  expect_plain(scripted);
  TokenEngineOptions with_choices = options(2);
  with_choices.num_choices = kTinyVocab;
  Decoder drafted(TinyPair::get().target(), TinyPair::get().drafter(), with_choices);
  expect_plain(drafted);
  Decoder windowed(TinyPair::get().target(), TinyPair::get().windowed(), with_choices);
  expect_plain(windowed);
  for (size_t i = 0; i < texts().size(); ++i) {
    const std::vector<double> logits = naive.logits(prompt_of(i));
    EXPECT_EQ(generated_of(i).front(), std::ranges::max_element(logits) - logits.begin());
  }
}

// Greedy choices over long contexts, where a difference in the last bit would grow until it shows.
TEST(LongContext, FieldFault12_ChangesNoToken) {
  constexpr int64_t kText = 32;
  const TempDir folder;
  const TinyStack stack{.layers = 2, .hidden = 32, .heads = 2, .kv_heads = 1, .inner = 48};
  tiny_target({.stack = stack, .max_positions = 4200}, 7).write(folder / "target");
  tiny_drafter({.stack = stack, .target_layers = 2, .taps = {1, 0}}, 8).write(folder / "drafter");
  for (const auto& [length, seeds] : {std::pair{128, 12}, {512, 12}, {4096, 2}}) {
    std::vector<std::vector<int32_t>> prompts;
    for (int seed = 0; seed < seeds; ++seed) prompts.push_back(random_prompt(static_cast<uint32_t>(70 + seed), length));
    const PlainTexts expected = plain_texts(folder / "target", prompts, kText);
    const TokenEngineOptions engine_options{.threads = 1,
                                            .max_sequences = 3,
                                            .max_positions = length + kText,
                                            .max_width = kTinyWidth,
                                            .num_choices = kTinyVocab};
    const auto expect_same = [&](Decoder& decoder) {
      std::vector<TokenRequest> requests;
      for (size_t i = 0; i < prompts.size(); ++i) {
        requests.push_back({.prompt_ids = prompts[i],
                            .max_tokens = kText - kTinyWidth - 1,
                            .width = static_cast<int32_t>(1 + 5 * i % kTinyWidth)});
      }
      const std::vector<TokenResult> results = decoder.run(requests);
      for (size_t i = 0; i < prompts.size(); ++i) {
        EXPECT_EQ(results[i].ids, expected_ids(expected[i], requests[i])) << length << " positions, prompt " << i;
      }
    };
    Decoder drafted(folder / "target", folder / "drafter", engine_options);
    expect_same(drafted);
    Decoder scripted(folder / "target", engine_options, [&](const Target& target) -> std::unique_ptr<DraftSource> {
      return std::make_unique<ScriptedDrafts>(target, kTinyWidth, expected, std::vector<int32_t>{4, 0, kTinyWidth, 1});
    });
    expect_same(scripted);
  }
}

TEST(StopId, FieldFault12_EndsTheTextAtEveryPlaceOfABlock) {
  Decoder decoder(TinyPair::get().target(), options(), right_drafts());
  const std::span<const int32_t> text = generated_of(0);
  int num_places = 0;
  for (size_t place = 0; place <= 2 * kTinyWidth; ++place) {
    if (std::ranges::find(text, text[place]) != text.begin() + static_cast<int64_t>(place)) continue;
    ++num_places;
    const TokenRequest request{
        .prompt_ids = prompt_of(0), .max_tokens = 32, .width = kTinyWidth, .stop_ids = {text[place]}};
    const TokenResult result = decoder.run(request);
    EXPECT_EQ(result.ids, std::vector<int32_t>(text.begin(), text.begin() + static_cast<int64_t>(place) + 1));
    EXPECT_EQ(result.end, EndReason::at_stop);
  }
  EXPECT_GE(num_places, kTinyWidth + 1);
}

TEST(StopId, AmongRejectedDraftsHasNoEffect) {
  const int32_t wrong = static_cast<int32_t>((generated_of(0)[1] + 1) % kTinyVocab);  // draft 0, spoiled
  Decoder decoder(TinyPair::get().target(), options(), [](const Target& target) -> std::unique_ptr<DraftSource> {
    return std::make_unique<ScriptedDrafts>(target, kTinyWidth, texts(), std::vector<int32_t>{0});
  });
  const TokenRequest request{.prompt_ids = prompt_of(0), .max_tokens = 2, .width = 4, .stop_ids = {wrong}};
  ASSERT_EQ(std::ranges::find(generated_of(0).first(2), wrong), generated_of(0).begin() + 2);
  EXPECT_EQ(decoder.run(request).end, EndReason::at_length);
}

TEST(MaxTokens, FieldFault12_IsExact) {
  Decoder decoder(TinyPair::get().target(), options(), right_drafts());
  for (const int32_t width : {0, 1, 4, 15}) {
    for (int64_t max_tokens = 0; max_tokens <= 20; ++max_tokens) {
      const TokenRequest request{.prompt_ids = prompt_of(0), .max_tokens = max_tokens, .width = width};
      const TokenResult result = decoder.run(request);
      EXPECT_EQ(static_cast<int64_t>(result.ids.size()), max_tokens);
      EXPECT_EQ(result.ids, expected_ids(texts()[0], request));
      EXPECT_EQ(result.end, EndReason::at_length);
      for (const SequenceCycle& cycle : result.cycles) EXPECT_EQ(cycle.produced, cycle.accepted + 1);
    }
  }
}

TEST(MaxPositions, EndTheText) {
  const auto prompt_length = static_cast<int64_t>(prompt_of(0).size());
  for (const int64_t room : {0, 1, 2, 15, 16, 17, 30}) {
    Decoder decoder(TinyPair::get().target(), options(2, prompt_length + room), right_drafts());
    for (const int64_t max_tokens : {room, room + 1, int64_t{1000}, std::numeric_limits<int64_t>::max()}) {
      const TokenRequest request{.prompt_ids = prompt_of(0), .max_tokens = max_tokens, .width = kTinyWidth};
      const TokenResult result = decoder.run(request);
      EXPECT_EQ(static_cast<int64_t>(result.ids.size()), room);
      EXPECT_TRUE(std::ranges::equal(result.ids, generated_of(0).first(result.ids.size())));
      EXPECT_EQ(result.end, EndReason::at_length);
    }
  }
}

TEST(MaxPositions, LongerPromptsAreRefusedBeforeAnythingIsDecoded) {
  Decoder decoder(TinyPair::get().target(), options(1, 256), right_drafts());
  bool called = false;
  std::vector<TokenRequest> requests = {
      {.prompt_ids = prompt_of(0), .max_tokens = 4, .width = 4, .on_token = [&](int32_t) { return called = true; }},
      {.prompt_ids = prompt_of(4), .max_tokens = 4, .width = 4}};
  expect_error(decoder.engine().run(requests), Code::limit_exceeded, {"request 1", "257", "256"});
  EXPECT_FALSE(called);
  requests[1].prompt_ids.pop_back();
  const std::vector<TokenResult> results = decoder.run(requests);
  EXPECT_EQ(results[0].ids.size(), 4u);
  EXPECT_TRUE(results[1].ids.empty());
  EXPECT_EQ(results[1].end, EndReason::at_length);
}

TEST(Caller, EndsATextAfterAnyToken) {
  Decoder decoder(TinyPair::get().target(), options(2), right_drafts());
  for (size_t heard = 1; heard <= 20; ++heard) {
    std::vector<int32_t> streamed;
    TokenRequest leaving{.prompt_ids = prompt_of(0), .max_tokens = 32, .width = kTinyWidth};
    leaving.on_token = [&](int32_t id) {
      streamed.push_back(id);
      return streamed.size() < heard;
    };
    const TokenRequest staying{.prompt_ids = prompt_of(1), .max_tokens = 30, .width = 7};
    const std::vector<TokenResult> results = decoder.run({leaving, staying, staying});
    EXPECT_EQ(results[0].ids, streamed);
    EXPECT_TRUE(std::ranges::equal(results[0].ids, generated_of(0).first(heard)));
    EXPECT_EQ(results[0].end, EndReason::by_caller);
    for (size_t i = 1; i <= 2; ++i) EXPECT_EQ(results[i].ids, expected_ids(texts()[1], staying));
  }
}

TEST(Engine, IsAsNewAfterARun) {
  Decoder decoder(TinyPair::get().target(), options(3), right_drafts());
  for (int run = 0; run < 3; ++run) {
    std::vector<TokenRequest> requests;
    for (const size_t text : {2u, 0u, 1u, 5u}) {
      requests.push_back({.prompt_ids = prompt_of(text), .max_tokens = 10 + 5 * run, .width = kTinyWidth - run});
    }
    const std::vector<TokenResult> results = decoder.run(requests);
    size_t at = 0;
    for (const size_t text : {2u, 0u, 1u, 5u}) {
      EXPECT_EQ(results[at].ids, expected_ids(texts()[text], requests[at]));
      ++at;
    }
    EXPECT_GT(decoder.engine().times().total_s, 0.0);
  }
}

}  // namespace
}  // namespace blockdraft::test
