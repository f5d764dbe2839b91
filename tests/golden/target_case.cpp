// A target fixture: logits and taps of a given text, in one pass and in pieces, and greedy decoding.

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "base/error.h"
#include "engine/token_engine.h"
#include "golden/case.h"
#include "golden/teacher_force.h"
#include "target/target.h"

namespace blockdraft::golden {
namespace {

constexpr int64_t kMaxPositions = 128;

std::vector<float> columns(const std::vector<float>& matrix, size_t width, size_t first, size_t count) {
  std::vector<float> part;
  for (size_t row = 0; row + width <= matrix.size(); row += width) {
    const auto begin = matrix.begin() + static_cast<int64_t>(row + first);
    part.insert(part.end(), begin, begin + static_cast<int64_t>(count));
  }
  return part;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

TokenEngineOptions greedy_options(const Context& context, const Target& target) {
  return {.device = context.cuda,
          .threads = 1,
          .isa = context.isa,
          .max_positions = kMaxPositions,
          .num_choices = target.lm_head().out_features};
}

Status check_greedy(const Case& fixture, Target& target, const Context& context, double error, Comparison& comparison) {
  const std::vector<int32_t> expected = fixture.integers("greedy_after_16");
  std::vector<int32_t> prompt = fixture.integers("input_ids");
  prompt.resize(16);
  target.reset(0);
  BLOCKDRAFT_ASSIGN(const auto engine, TokenEngine::open(target, nullptr, greedy_options(context, target)));
  const TokenRequest request{.prompt_ids = prompt, .max_tokens = static_cast<int64_t>(expected.size())};
  BLOCKDRAFT_ASSIGN(const std::vector<TokenResult> results, engine->run({&request, 1}));
  // Only the smallest margin of the continuation is recorded; it stands for each of them.
  const std::vector<float> margins(expected.size(), fixture.description.value("greedy_min_margin", 0.0f));
  comparison.tokens("greedy_after_16", results.front().ids, expected, margins, error);
  return {};
}

}  // namespace

Result<Comparison> run_target_case(test::DeviceContext& device, const Case& fixture) {
  BLOCKDRAFT_ASSIGN(const TargetConfig config, read_target_config(fixture.folder));
  BLOCKDRAFT_ASSIGN(
      const std::unique_ptr<Target> target,
      load_target({fixture.folder}, config,
                  {.max_sequences = 1, .max_positions = kMaxPositions, .max_rows = kPrefillRows}, device.loading()));
  std::vector<int32_t> tap_layer_ids;
  for (int32_t id = -1; id < config.transformer.num_hidden_layers; ++id) {
    if (fixture.has(fmt::format("tap.{}", id))) tap_layer_ids.push_back(id);
  }
  std::ranges::reverse(tap_layer_ids);  // any order is allowed

  Comparison comparison(fixture.tolerance(device.context()));
  const std::vector<int32_t> ids = fixture.integers("input_ids");
  BLOCKDRAFT_ASSIGN(const Outputs whole, teacher_force(device, *target, ids, tap_layer_ids, ids.size()));
  const double error = comparison.tensor("logits", whole.logits, fixture.floats("logits"));
  const auto hidden = static_cast<size_t>(config.transformer.hidden_size);
  for (size_t i = 0; i < tap_layer_ids.size(); ++i) {
    comparison.tensor("taps", columns(whole.taps, tap_layer_ids.size() * hidden, i * hidden, hidden),
                      fixture.floats(fmt::format("tap.{}", tap_layer_ids[i])));
  }
  for (const size_t piece : {size_t{1}, size_t{7}}) {
    BLOCKDRAFT_ASSIGN(const Outputs pieces, teacher_force(device, *target, ids, tap_layer_ids, piece));
    comparison.require(fmt::format("logits in passes of {} rows have other bits than in one pass", piece),
                       same_bits(pieces.logits, whole.logits));
    comparison.require(fmt::format("taps in passes of {} rows have other bits than in one pass", piece),
                       same_bits(pieces.taps, whole.taps));
  }
  BLOCKDRAFT_TRY(check_greedy(fixture, *target, device.context(), error, comparison));
  return comparison;
}

}  // namespace blockdraft::golden
