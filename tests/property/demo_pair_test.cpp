// The demo pair: a trained target and its trained drafter.

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/json.h"
#include "checkpoint/config_reader.h"
#include "property/pairs.h"
#include "support/op_context.h"
#include "support/take.h"

namespace blockdraft::test {
namespace {

constexpr int32_t kWidth = 7;          // the trained one
constexpr int64_t kNumChoices = 4096;  // rows beyond the tokenizer are padding
constexpr double kNearTie = 1e-3;      // the gap of two logits below which float32 orders of summation may differ
constexpr int64_t kMaxPositions = 160;

struct GoldenText {
  std::vector<int32_t> prompt_ids;
  std::vector<int32_t> output_ids;
  std::vector<int32_t> produced;  // by each cycle of the reference, which always drafts the full width
  double min_margin = 0;
};

const std::vector<GoldenText>& golden_texts() {
  static const std::vector<GoldenText> texts = [] {
    const Json golden =
        take(read_json_file(std::filesystem::path(BLOCKDRAFT_SOURCE_DIR) / "tests/golden/demo_generate.json"));
    std::vector<GoldenText> list;
    for (const Json& entry : golden["cases"]) {
      list.push_back({entry["prompt_ids"].get<std::vector<int32_t>>(), entry["output_ids"].get<std::vector<int32_t>>(),
                      entry["acceptance_lengths"]["dflash"].get<std::vector<int32_t>>(),
                      entry["min_margin"].get<double>()});
    }
    return list;
  }();
  return texts;
}

TokenEngineOptions options(int32_t max_sequences, int32_t threads = 2) {
  return {.threads = threads,
          .max_sequences = max_sequences,
          .max_positions = kMaxPositions,
          .max_width = kWidth,
          .num_choices = kNumChoices};
}

// Compares cycle by cycle as long as the text had room for a full block; returns how many were compared.
int expect_cycles(const GoldenText& golden, const TokenResult& result) {
  int compared = 0;
  for (size_t i = 0; i < result.cycles.size() && result.cycles[i].width == kWidth; ++i) {
    if (i >= golden.produced.size()) {
      ADD_FAILURE() << "cycle " << i << ": the reference had only " << golden.produced.size();
      break;
    }
    EXPECT_EQ(result.cycles[i].produced, golden.produced[i]) << "cycle " << i;
    ++compared;
  }
  return compared;
}

TEST(DemoPair, GivesTheTextsAndCyclesOfTheReference) {
  TokenEngineOptions as_recorded = options(4);
  as_recorded.isa = float32_isa();
  Decoder decoder(demo_target(), demo_drafter(), as_recorded);
  std::vector<TokenRequest> requests;
  for (const GoldenText& golden : golden_texts()) {
    requests.push_back({.prompt_ids = golden.prompt_ids,
                        .max_tokens = static_cast<int64_t>(golden.output_ids.size()),
                        .width = kWidth});
  }
  ASSERT_EQ(requests.size(), 8u);
  const std::vector<TokenResult> results = decoder.run(requests);
  int num_cycles = 0;
  int num_near_ties = 0;
  for (size_t i = 0; i < results.size(); ++i) {
    SCOPED_TRACE("prompt " + std::to_string(i));
    const GoldenText& golden = golden_texts()[i];
    if (golden.min_margin < kNearTie) {
      // Beyond the tie the texts may differ; the others must not.
      ++num_near_ties;
      continue;
    }
    EXPECT_EQ(results[i].ids, golden.output_ids);
    num_cycles += expect_cycles(golden, results[i]);
  }
  EXPECT_LE(num_near_ties, 2);
  std::printf("%zu texts, %d cycles compared, %d texts with a near tie left out\n", results.size(), num_cycles,
              num_near_ties);
  EXPECT_GE(num_cycles, 150);
}

TEST(DemoPair, GivesThePlainTextAtEveryWidth) {
  constexpr int64_t kLength = 24;
  std::vector<TokenRequest> requests;
  for (size_t i = 0; i < 5; ++i) {
    requests.push_back(
        {.prompt_ids = golden_texts()[i].prompt_ids, .max_tokens = kLength - 4 * static_cast<int64_t>(i)});
  }
  std::vector<std::vector<int32_t>> plain;
  TokenEngineOptions plain_options = options(1);
  plain_options.max_width = 0;
  Decoder plain_decoder(demo_target(), plain_options);
  for (const TokenRequest& request : requests) plain.push_back(plain_decoder.run(request).ids);
  for (int32_t width = 1; width <= kWidth; ++width) {
    Decoder decoder(demo_target(), demo_drafter(), options(1 + width % 5));
    for (TokenRequest& request : requests) request.width = width;
    const std::vector<TokenResult> results = decoder.run(requests);
    for (size_t i = 0; i < requests.size(); ++i) {
      EXPECT_EQ(results[i].ids, plain[i]) << "request " << i << ", width " << width;
    }
  }
}

TEST(DemoPair, GivesThePlainTextWithRandomAndWithWrongDrafts) {
  constexpr int64_t kLength = 16;
  PlainTexts texts;
  std::vector<TokenRequest> requests;
  for (size_t i = 0; i < 3; ++i) {
    const GoldenText& golden = golden_texts()[i];
    ASSERT_GT(golden.min_margin, kNearTie);
    texts.push_back(golden.prompt_ids);
    texts.back().insert(texts.back().end(), golden.output_ids.begin(), golden.output_ids.end());
    requests.push_back(
        {.prompt_ids = golden.prompt_ids, .max_tokens = kLength, .width = 3 + 2 * static_cast<int32_t>(i)});
  }
  const std::vector<MakeDrafts> sources = {
      [](const Target& target) -> std::unique_ptr<DraftSource> {
        return std::make_unique<RandomDrafts>(target, kWidth, 1);
      },
      [&](const Target& target) -> std::unique_ptr<DraftSource> {
        return std::make_unique<AlwaysWrongDrafts>(target, kWidth, texts, 2);
      },
      [&](const Target& target) -> std::unique_ptr<DraftSource> {
        return std::make_unique<ScriptedDrafts>(target, kWidth, texts, std::vector<int32_t>{0, 3, 7, 1});
      }};
  for (const MakeDrafts& source : sources) {
    Decoder decoder(demo_target(), options(2), source);
    const std::vector<TokenResult> results = decoder.run(requests);
    for (size_t i = 0; i < requests.size(); ++i) EXPECT_EQ(results[i].ids, expected_ids(texts[i], requests[i]));
  }
}

TEST(DemoPair, CompanyChangesNoCycle) {
  const auto request = [](size_t i) {
    return TokenRequest{.prompt_ids = golden_texts()[i].prompt_ids, .max_tokens = 24, .width = kWidth};
  };
  Decoder alone(demo_target(), demo_drafter(), options(1, 1));
  Decoder together(demo_target(), demo_drafter(), options(4, 2));
  const std::vector<TokenResult> results = together.run({request(0), request(1), request(2), request(3)});
  for (size_t i = 0; i < results.size(); ++i) {
    const TokenResult expected = alone.run(request(i));
    EXPECT_EQ(results[i].ids, expected.ids);
    ASSERT_EQ(results[i].cycles.size(), expected.cycles.size());
    for (size_t c = 0; c < expected.cycles.size(); ++c) {
      EXPECT_EQ(results[i].cycles[c].accepted, expected.cycles[c].accepted) << "cycle " << c;
    }
  }
}

}  // namespace
}  // namespace blockdraft::test
