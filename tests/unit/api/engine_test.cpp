// The public engine on the demo pair.

#include "blockdraft/engine.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace blockdraft {
namespace {

using ::testing::HasSubstr;

const std::string kTarget = BLOCKDRAFT_SOURCE_DIR "/demo/pycode-14m";
const std::string kDrafter = BLOCKDRAFT_SOURCE_DIR "/demo/pycode-14m-dflash";

Engine open(EngineOptions options) {
  options.target = kTarget;
  auto engine = Engine::open(options);
  EXPECT_TRUE(engine) << engine.error().message;
  return std::move(engine).value();
}

TEST(Engine, DraftedTextEqualsPlainTextInABatch) {
  std::vector<Request> requests;
  for (const char* prompt :
       {"def main():\n", "class Stack:\n    def push(", "import os\n", "x = [1, 2, 3]\nfor i in "}) {
    requests.push_back({.prompt = prompt, .max_tokens = 40});
  }
  Engine plain = open({});
  Engine drafted = open({.drafter = kDrafter, .max_sequences = 3});
  std::vector<std::string> pieces(requests.size());
  const auto expected = plain.generate(requests);
  const auto found = drafted.generate(requests, [&](const Piece& piece) {
    pieces[piece.request] += piece.text;
    return true;
  });
  ASSERT_TRUE(expected && found);
  for (size_t i = 0; i < requests.size(); ++i) {
    EXPECT_EQ((*found)[i].ids, (*expected)[i].ids);
    EXPECT_EQ((*found)[i].text, (*expected)[i].text);
    EXPECT_EQ((*found)[i].text, pieces[i]);
  }
}

TEST(Engine, EndsAtAStopTextAndSaysSo) {
  Engine engine = open({.drafter = kDrafter});
  const auto whole = engine.generate({.prompt = "def main():\n", .max_tokens = 40});
  ASSERT_TRUE(whole);
  const size_t end = whole->text.size() / 2;
  const auto stopped =
      engine.generate({.prompt = "def main():\n", .max_tokens = 40, .stop = {whole->text.substr(end, 3)}});
  ASSERT_TRUE(stopped);
  EXPECT_EQ(stopped->finish_reason, FinishReason::stop);
  EXPECT_LE(stopped->text.size(), end);
  EXPECT_TRUE(whole->text.starts_with(stopped->text));
}

TEST(Engine, CancelsWhenTheCallbackSaysSo) {
  Engine engine = open({.drafter = kDrafter});
  const auto generation =
      engine.generate({.prompt = "def main():\n", .max_tokens = 40}, [](const Piece&) { return false; });
  ASSERT_TRUE(generation);
  EXPECT_EQ(generation->finish_reason, FinishReason::canceled);
  EXPECT_LT(generation->ids.size(), 40u);
}

TEST(Engine, RefusesOptionsOutsideTheirRange) {
  const auto message = [](EngineOptions options) {
    options.target = kTarget;
    const auto engine = Engine::open(options);
    return engine ? std::string("opened") : engine.error().message;
  };
  EXPECT_THAT(message({.drafter = kDrafter, .draft_tokens = 8}), HasSubstr("draft_tokens is 8, expected 1 to 7"));
  EXPECT_THAT(message({.draft_tokens = 2}), HasSubstr("draft_tokens is 2, but no drafter is open"));
  EXPECT_THAT(message({.draft_tokens = kAdaptiveWidth}), HasSubstr("draft_tokens is auto, but no drafter is open"));
  EXPECT_THAT(message({.drafter = kDrafter, .draft_tokens = 0}), HasSubstr("draft_tokens is 0, expected 1 to 7"));
  EXPECT_THAT(message({.drafter = kDrafter, .accept_pattern = {0.5f, -0.1f}}),
              HasSubstr("option accept_pattern has -0.1, expected 0 to 1"));
  EXPECT_THAT(message({.accept_pattern = {0.5f}}), HasSubstr("option accept_pattern is given, but no"));
  EXPECT_THAT(message({.drafter_weights = WeightFormat::fp8}), HasSubstr("option drafter_weights is given, but no"));
  EXPECT_THAT(message({.drafter_layout = DrafterLayout::shifted}), HasSubstr("option drafter_layout is given, but no"));
  EXPECT_THAT(message({.confidence_threshold = 0.5f}), HasSubstr("option confidence_threshold is given, but no"));
  EXPECT_THAT(message({.drafter = kDrafter, .confidence_threshold = 1.5f}), HasSubstr("is 1.5, expected 0 to 1"));
  EXPECT_THAT(message({.drafter = kDrafter, .confidence_threshold = 0.5f}),
              HasSubstr("option confidence_threshold is 0.5, expected 0: "));
  EXPECT_THAT(message({.max_sequences = 0}), HasSubstr("max_sequences is 0, expected 1 to 1024"));
  EXPECT_THAT(message({.max_positions = 2049}), HasSubstr("max_positions is 2049, expected 1 to 2048"));
  EXPECT_THAT(message({.threads = -1}), HasSubstr("threads is -1"));
}

TEST(Engine, RefusesRequestsThatCannotBeServed) {
  Engine engine = open({.max_positions = 8});
  const auto message = [&](const Request& request) {
    const auto generation = engine.generate(request);
    return generation ? std::string("generated") : generation.error().message;
  };
  EXPECT_THAT(message({.prompt = "a b c d e f g h i j k l"}), HasSubstr("the engine takes 8 positions"));
  EXPECT_THAT(message({.prompt = "a", .max_tokens = -1}), HasSubstr("max_tokens is -1"));
  EXPECT_THAT(message({.prompt = "a", .stop = {""}}), HasSubstr("a stop text is empty"));
  EXPECT_THAT(message({.prompt_ids = {4160}}), HasSubstr("prompt id is 4160, expected 0 to 4159"));
}

TEST(Engine, AdaptsTheWidthFromTheNextCallOn) {
  Engine engine = open({.drafter = kDrafter, .draft_tokens = kAdaptiveWidth});
  EXPECT_TRUE(engine.info().adapts_width);
  EXPECT_EQ(engine.info().draft_tokens, engine.info().trained_width);
  const Request request{.prompt = "def main():\n", .max_tokens = 40};
  const auto adaptive = engine.generate(request);
  ASSERT_TRUE(adaptive);
  Request ratio = request;
  ratio.acceptance = Acceptance::ratio;
  EXPECT_TRUE(engine.generate(ratio)) << "nothing is drawn";
  ratio.temperature = 1.0f;
  const auto refused = engine.generate(ratio);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("acceptance is ratio"));
  ASSERT_TRUE(engine.set_draft_tokens(2));
  EXPECT_FALSE(engine.info().adapts_width);
  EXPECT_EQ(engine.info().draft_tokens, 2);
  const auto fixed = engine.generate(request);
  ASSERT_TRUE(fixed);
  EXPECT_EQ(fixed->ids, adaptive->ids);
}

TEST(Engine, PlansItsMemory) {
  const Engine engine = open({.drafter = kDrafter, .max_sequences = 2, .max_positions = 1024});
  int64_t pages = 0;
  for (const MemoryPlanItem& item : engine.info().memory_plan) {
    if (item.name == "target pages") pages = item.size_bytes;
  }
  // 8 layers, K and V of 2 heads of 64 float32 numbers, for 1024 positions of 2 sequences.
  EXPECT_EQ(pages, int64_t{8} * 2 * 2 * 64 * 4 * 1024 * 2);
}

const std::string kConfident = kTarget + "-dspark";  // has a confidence head

std::vector<Request> some_requests() {
  std::vector<Request> requests;
  for (const char* prompt : {"def main():\n", "class Stack:\n    def push(", "import os\n"}) {
    requests.push_back({.prompt = prompt, .max_tokens = 20});
  }
  return requests;
}

std::vector<Generation> generate(Engine& engine, const std::vector<Request>& requests) {
  auto generations = engine.generate(requests);
  if (!generations) {
    ADD_FAILURE() << generations.error().message;
    return std::vector<Generation>(requests.size());
  }
  return std::move(*generations);
}

// Whether BF16 and FP8 weights are copied into packs at load.
bool packs(const Engine& engine) { return engine.info().cpu_isa == "avx512_bf16"; }

int64_t converted_bytes(const Engine& engine, const std::string& name = "drafter weights") {
  for (const MemoryPlanItem& item : engine.info().memory_plan) {
    if (item.name == name) return item.size_bytes;
  }
  return 0;
}

// Whatever the weights are, drafts change no bit of what the target writes with them.
TEST(Engine, TargetWeightsOfEveryFormatAreATargetOfTheirOwn) {
  const int64_t stored = open({}).info().verify_weight_bytes;
  for (const WeightFormat format : {WeightFormat::bf16, WeightFormat::fp8, WeightFormat::nvfp4, WeightFormat::int8}) {
    Engine plain = open({.target_weights = format});
    Engine drafted = open({.drafter = kDrafter, .max_sequences = 3, .target_weights = format});
    const std::vector<Generation> expected = generate(plain, some_requests());
    const std::vector<Generation> found = generate(drafted, some_requests());
    for (size_t i = 0; i < found.size(); ++i) EXPECT_EQ(found[i].ids, expected[i].ids);
    const int64_t owned = converted_bytes(plain, "target weights");
    EXPECT_EQ(converted_bytes(drafted, "target weights"), owned);
    const int64_t read = plain.info().verify_weight_bytes;
    if (format == WeightFormat::bf16) {
      EXPECT_GT(read, stored);
    }
    // The head, 4160 rows of 384 columns, was BF16; the layers were FP8 already.
    if (format == WeightFormat::fp8) {
      EXPECT_EQ(read, stored - 4160 * (384 - 4));
      if (packs(plain)) {
        EXPECT_LT(owned, read) << "scales of the layers are not in packs";
        EXPECT_GT(owned, read * 99 / 100);
      } else {
        EXPECT_EQ(owned, 4160 * (384 + 4));
      }
    }
    if (format == WeightFormat::nvfp4) {
      EXPECT_LT(read, stored * 7 / 10);
    }
    if (format == WeightFormat::int8) {
      EXPECT_EQ(read, owned);
    }
  }
}

TEST(Engine, DrafterWeightsOfEveryFormatGiveThePlainText) {
  Engine plain = open({});
  const std::vector<Generation> expected = generate(plain, some_requests());
  for (const std::string& folder : {kDrafter, kConfident}) {
    const int64_t stored = open({.drafter = folder}).info().propose_weight_bytes;
    int64_t bf16_bytes = 0;
    for (const WeightFormat format : {WeightFormat::bf16, WeightFormat::fp8, WeightFormat::nvfp4, WeightFormat::int8}) {
      Engine drafted = open({.drafter = folder, .max_sequences = 3, .drafter_weights = format});
      const std::vector<Generation> found = generate(drafted, some_requests());
      int64_t accepted = 0;
      for (size_t i = 0; i < found.size(); ++i) {
        EXPECT_EQ(found[i].ids, expected[i].ids);
        for (const CycleRecord& cycle : found[i].cycles) accepted += cycle.accepted;
      }
      EXPECT_GT(accepted, 10) << "the drafter took part";
      const int64_t owned = converted_bytes(drafted);
      const int64_t read = drafted.info().propose_weight_bytes;
      if (format == WeightFormat::fp8) {
        EXPECT_EQ(owned > 0, packs(drafted)) << "the file's own format stays mapped";
        EXPECT_EQ(read, stored);
      } else if (format == WeightFormat::bf16) {
        bf16_bytes = owned;
        EXPECT_GT(owned, 1'000'000);
        EXPECT_GT(read, stored);
      } else if (format == WeightFormat::int8) {
        // 8 bits and a scale of 16 for 32 of them, against 16 bits.
        EXPECT_EQ(owned * 32, bf16_bytes * 17);
        EXPECT_GT(read, stored);
      } else {
        // 4 bits and a scale of 8 for 16 of them, against 16 bits.
        EXPECT_EQ(owned * 32, bf16_bytes * 9);
        EXPECT_LT(read, stored);
      }
    }
  }
}

TEST(Engine, AConfidenceThresholdDropsDraftsAndChangesNoText) {
  Engine plain = open({});
  const std::vector<Generation> expected = generate(plain, some_requests());
  int64_t before = 1'000'000;
  for (const float threshold : {0.0f, 0.5f, 0.8f, 1.0f}) {
    Engine drafted = open({.drafter = kConfident, .max_sequences = 2, .confidence_threshold = threshold});
    const std::vector<Generation> found = generate(drafted, some_requests());
    int64_t verified = 0;
    for (size_t i = 0; i < found.size(); ++i) {
      EXPECT_EQ(found[i].ids, expected[i].ids) << threshold;
      for (const CycleRecord& cycle : found[i].cycles) {
        EXPECT_LE(cycle.accepted, cycle.width);
        EXPECT_LE(cycle.width, cycle.asked);
        EXPECT_TRUE(threshold > 0.0f || cycle.width == cycle.asked);
        verified += cycle.width;
      }
    }
    EXPECT_LT(verified, before) << threshold;
    before = verified;
  }
}

TEST(Engine, ReadsTheBlockAsItIsTold) {
  Engine plain = open({});
  Engine other = open({.drafter = kDrafter, .drafter_layout = DrafterLayout::shifted});
  EXPECT_EQ(other.info().trained_width, 8) << "a row more than in place";
  const std::vector<Generation> expected = generate(plain, some_requests());
  const std::vector<Generation> found = generate(other, some_requests());
  for (size_t i = 0; i < found.size(); ++i) EXPECT_EQ(found[i].ids, expected[i].ids);
  EXPECT_EQ(open({.drafter = kDrafter, .drafter_layout = DrafterLayout::in_place}).info().trained_width, 7);
}

}  // namespace
}  // namespace blockdraft
