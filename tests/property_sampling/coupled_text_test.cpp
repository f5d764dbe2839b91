// With a seed, drafting changes no token: at every temperature, width and batch, for every drafter
// (docs/architecture.md).

#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "property_sampling/demo_pairs.h"

namespace blockdraft::test {
namespace {

// Requests that differ in all that sampling knows.
std::vector<Request> requests() {
  std::vector<Request> list;
  for (const std::string& prompt : prompts()) {
    list.push_back({.prompt = prompt, .max_tokens = 28, .temperature = 0.8f, .seed = 40 + list.size()});
  }
  list[1].top_k = 20;
  list[1].top_p = 0.9f;
  list[2].temperature = 1.2f;
  list[2].min_p = 0.05f;
  list[2].repetition_penalty = 1.3f;
  list[3].presence_penalty = 0.6f;
  list[3].frequency_penalty = 0.4f;
  list[3].logit_bias = {{10, 2.0f}, {300, -4.0f}};
  list[4].temperature = 0.0f;  // greedy, with a penalty
  list[4].repetition_penalty = 1.2f;
  list.push_back({.prompt = prompts()[0], .max_tokens = 28});  // greedy
  return list;
}

const std::vector<Generation>& plain_texts() {
  static const std::vector<Generation> texts = [] {
    Engine plain = open_engine({});
    return generate(plain, requests());
  }();
  return texts;
}

class CoupledText : public testing::TestWithParam<std::string> {};

TEST_P(CoupledText, IsThePlainTextAtEveryWidthAndInEveryBatch) {
  for (const int32_t batch : {1, 3}) {
    Engine drafted = open_engine({.drafter = drafter_folder(GetParam()), .max_sequences = batch});
    int64_t accepted = 0;
    for (int32_t width = 1; width <= drafted.info().trained_width; ++width) {
      if (batch == 1 && width % 3 != 1) continue;
      ASSERT_TRUE(drafted.set_draft_tokens(width));
      const std::vector<Generation> texts = generate(drafted, requests());
      for (size_t i = 0; i < texts.size(); ++i) {
        EXPECT_EQ(texts[i].ids, plain_texts()[i].ids) << "request " << i << ", width " << width << ", batch " << batch;
        for (const CycleRecord& cycle : texts[i].cycles) accepted += cycle.accepted;
      }
    }
    EXPECT_GT(accepted, 50) << "the drafter took part";
  }
}

TEST_P(CoupledText, IsThePlainTextOfEverySeed) {
  std::vector<Request> list;
  for (uint64_t seed = 0; seed < 12; ++seed) {
    list.push_back({.prompt = prompts()[seed % 5], .max_tokens = 24, .temperature = 1.0f, .seed = seed << 30});
  }
  Engine plain = open_engine({.max_sequences = 4});
  Engine drafted = open_engine({.drafter = drafter_folder(GetParam()), .max_sequences = 4});
  const std::vector<Generation> expected = generate(plain, list);
  const std::vector<Generation> found = generate(drafted, list);
  for (size_t i = 0; i < list.size(); ++i) EXPECT_EQ(found[i].ids, expected[i].ids) << "request " << i;
}
INSTANTIATE_TEST_SUITE_P(, CoupledText, testing::ValuesIn(kDrafters), [](const auto& suite) { return suite.param; });

TEST(PlainText, FieldFault15_DependsOnTheSeedAndOnEachParameter) {
  Engine engine = open_engine({});
  const Request base{.prompt = prompts()[2], .max_tokens = 24, .temperature = 1.0f, .seed = 3};
  std::vector<Request> list(9, base);
  list[1].seed = 4;
  list[2].temperature = 0.4f;
  list[3].top_k = 1;
  list[4].top_p = 0.1f;
  list[5].min_p = 0.9f;
  list[6].repetition_penalty = 3.0f;
  list[7].presence_penalty = 2.0f;
  list[7].frequency_penalty = 2.0f;
  list[8].logit_bias = {{100, 60.0f}};
  const std::vector<Generation> texts = generate(engine, list);
  EXPECT_EQ(generate(engine, {base})[0].ids, texts[0].ids);
  for (size_t i = 1; i < texts.size(); ++i) EXPECT_NE(texts[i].ids, texts[0].ids) << "request " << i;
  EXPECT_EQ(std::ranges::count(texts[8].ids, 100), 24);
  // One id is left: the text is greedy.
  const Request greedy{.prompt = prompts()[2], .max_tokens = 24};
  EXPECT_EQ(texts[3].ids, generate(engine, {greedy})[0].ids);
}

TEST(PlainText, RefusesParametersOutOfRangeByName) {
  Engine engine = open_engine({});
  Request request{.prompt = "x", .temperature = -1.0f};
  const auto refused = engine.generate(request);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::invalid_argument);
  EXPECT_THAT(refused.error().message, testing::HasSubstr("request 0: temperature is -1, expected 0 to 100"));
  request = {.prompt = "x", .logit_bias = {{4096, 1.0f}}};  // a row of the table that no token uses
  EXPECT_FALSE(engine.generate(request));
}

}  // namespace
}  // namespace blockdraft::test
