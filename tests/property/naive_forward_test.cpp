// Plain decoding equals a forward pass over the whole text for every token.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

#include <gtest/gtest.h>

#include "base/json.h"
#include "checkpoint/config_reader.h"
#include "nn/output_head.h"
#include "property/pairs.h"
#include "support/naive_target.h"
#include "support/op_context.h"
#include "support/take.h"

namespace blockdraft::test {
namespace {

// Of the largest magnitude of a row of logits.
constexpr double kTolerance = 1e-4;

// The engine's own logits after `ids`, which come in passes of `piece` rows.
std::vector<float> engine_logits(Target& target, std::span<const int32_t> ids, size_t piece) {
  OpContext context(1, size_t{64} << 20, float32_isa());
  const OutputHead head{.weight = target.lm_head(), .num_choices = target.lm_head().out_features};
  Matrix hidden(1, target.config().transformer.hidden_size);
  target.reset(0);
  for (size_t first = 0; first < ids.size(); first += piece) {
    const std::span<const int32_t> part = ids.subspan(first, std::min(piece, ids.size() - first));
    const auto rows = static_cast<int32_t>(part.size());
    const int32_t last_row = rows - 1;
    const SequenceRows sequence{0, static_cast<int32_t>(first), part};
    target.reserve(0, rows);
    target.forward(context, {.sequences = {&sequence, 1}, .hidden_rows = {&last_row, 1}, .hidden = hidden.view()});
    target.commit(0, rows);
  }
  Matrix logits(1, head.weight.out_features);
  head_logits(context, logits.view(), hidden.view(), head);
  target.reset(0);
  return {logits.row(0), logits.row(0) + logits.columns()};
}

struct Choice {
  int32_t id = 0;
  double margin = 0;
  double magnitude = 0;
};

Choice greedy(const std::vector<double>& logits) {
  const auto best = std::ranges::max_element(logits);
  Choice choice{.id = static_cast<int32_t>(best - logits.begin()), .margin = HUGE_VAL};
  for (size_t i = 0; i < logits.size(); ++i) {
    if (static_cast<int32_t>(i) != choice.id) choice.margin = std::min(choice.margin, *best - logits[i]);
    choice.magnitude = std::max(choice.magnitude, std::abs(logits[i]));
  }
  return choice;
}

// Compares `count` generated ids of `text` and the logits that they come from.
void expect_naive(const std::filesystem::path& folder, const std::vector<int32_t>& text, size_t count, size_t piece) {
  const NaiveTarget naive(folder);
  const auto target = open_target(folder, {.isa = float32_isa(), .max_positions = static_cast<int64_t>(text.size())});
  int num_near_ties = 0;
  double worst = 0;
  for (size_t length = text.size() - count; length < text.size(); ++length) {
    const std::span<const int32_t> ids = std::span(text).first(length);
    const std::vector<double> expected = naive.logits(ids);
    const Choice choice = greedy(expected);
    const std::vector<float> found = engine_logits(*target, ids, piece);
    double error = 0;
    for (size_t i = 0; i < expected.size(); ++i) {
      error = std::max(error, std::abs(expected[i] - static_cast<double>(found[i])));
    }
    worst = std::max(worst, error / choice.magnitude);
    if (choice.margin <= 2 * error) {
      ++num_near_ties;
    } else {
      EXPECT_EQ(text[length], choice.id) << "position " << length << ", margin " << choice.margin;
    }
  }
  EXPECT_LE(worst, kTolerance);
  EXPECT_LT(num_near_ties, static_cast<int>(count));
  std::printf("%zu tokens, logits within %.1e, %d near ties\n", count, worst, num_near_ties);
}

TEST(NaiveForward, EqualsPlainDecodingOfATinyTarget) {
  constexpr int64_t kCount = 40;
  for (const int64_t prompt_length : {1, 30}) {
    const PlainTexts texts =
        plain_texts(TinyPair::get().target(), {random_prompt(41, prompt_length)}, kCount, float32_isa());
    expect_naive(TinyPair::get().target(), texts.front(), kCount, 256);
    expect_naive(TinyPair::get().target(), texts.front(), 3, 1);
  }
}

TEST(NaiveForward, EqualsPlainDecodingOfTheDemoTarget) {
  constexpr int64_t kCount = 4;
  const Json golden =
      take(read_json_file(std::filesystem::path(BLOCKDRAFT_SOURCE_DIR) / "tests/golden/demo_generate.json"));
  const auto prompt = golden["cases"][0]["prompt_ids"].get<std::vector<int32_t>>();
  const PlainTexts texts = plain_texts(demo_target(), {prompt}, kCount, float32_isa());
  expect_naive(demo_target(), texts.front(), kCount, 256);
}

}  // namespace
}  // namespace blockdraft::test
