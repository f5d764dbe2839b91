#include "property_sampling/three_tokens.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "property_sampling/reference_filters.h"
#include "support/naive_target.h"
#include "support/op_context.h"

namespace blockdraft::test {
namespace {

constexpr int64_t kRows = kLawIds + 2;
constexpr TinyStack kStack{.layers = 1, .hidden = 16, .heads = 2, .kv_heads = 1, .head_dim = 8, .inner = 16};

std::vector<double> adjusted(std::vector<double> logits, const SamplingParams& sampling,
                             std::span<const int32_t> text) {
  const auto generated = text.subspan(kLawPrompt.size());
  for (int32_t id = 0; id < kLawIds; ++id) {
    double& logit = logits[static_cast<size_t>(id)];
    for (const IdBias& bias : sampling.logit_bias) {
      if (bias.id == id) logit += static_cast<double>(bias.bias);
    }
    const auto repetition = static_cast<double>(sampling.repetition_penalty);
    if (std::ranges::count(text, id) > 0) logit = logit > 0 ? logit / repetition : logit * repetition;
    const auto times = static_cast<double>(std::ranges::count(generated, id));
    logit -= static_cast<double>(sampling.frequency_penalty) * times;
    if (times > 0) logit -= static_cast<double>(sampling.presence_penalty);
  }
  return logits;
}

// The law of the token after `text`, prompt included.
Law law_after(const NaiveTarget& target, std::span<const int32_t> text, const SamplingParams& sampling) {
  std::vector<double> logits = target.logits(text);
  logits.resize(kLawIds);
  logits = adjusted(std::move(logits), sampling, text);
  std::vector<int32_t> kept;
  if (!keep_by_sorting({logits.begin(), logits.end()}, sampling_of_row(sampling, 0), kept)) {
    throw std::runtime_error("an id lies so near the boundary of a filter that its law cannot be told");
  }
  Law law(kLawIds);
  double total = 0;
  for (const int32_t id : kept) {
    const auto at = static_cast<size_t>(id);
    law[at] = std::exp(logits[at] / static_cast<double>(sampling.temperature));
    total += law[at];
  }
  for (double& p : law) p /= total;
  return law;
}

void extend(const NaiveTarget& target, const SamplingParams& sampling, std::vector<int32_t>& text, double probability,
            Law& law) {
  if (text.size() == kLawPrompt.size() + 3) {
    law.push_back(probability);
    return;
  }
  const Law next = probability > 0 ? law_after(target, text, sampling) : Law(kLawIds);
  for (int32_t id = 0; id < kLawIds; ++id) {
    text.push_back(id);
    extend(target, sampling, text, probability * next[static_cast<size_t>(id)], law);
    text.pop_back();
  }
}

}  // namespace

const LawModels& LawModels::get() {
  static const LawModels models;
  return models;
}

LawModels::LawModels() {
  tiny_target({.stack = kStack, .vocab = kRows, .max_positions = 64}, 5).write(target());
  for (const TinyFamily family : {TinyFamily::dflash, TinyFamily::dflash2, TinyFamily::dspark}) {
    tiny_drafter({.family = family,
                  .stack = kStack,
                  .vocab = kRows,
                  .target_layers = 1,
                  .taps = {0},
                  .block_size = kLawWidth + 1,
                  .mask_id = kRows - 1,
                  .rank = 4,
                  .selector_top_k = 5},
                 6)
        .write(drafter(family));
  }
}

std::filesystem::path LawModels::drafter(TinyFamily family) const { return folder_ / name_of(family); }

const std::vector<LawCase>& law_cases() {
  static const std::vector<LawCase> cases = {
      {"plain", {.temperature = 1.0f}},
      {"cold", {.temperature = 0.6f}},
      {"hot top-k", {.temperature = 1.6f, .top_k = 4}},
      {"top-p", {.temperature = 1.2f, .top_p = 0.8f}},
      {"min-p", {.temperature = 1.5f, .min_p = 0.1f}},
      {"penalties",
       {.temperature = 0.9f, .repetition_penalty = 1.5f, .presence_penalty = 0.6f, .frequency_penalty = 0.8f}},
      {"bias", {.temperature = 1.0f, .logit_bias = {{2, 1.5f}, {4, -100.0f}}}},
      {"all together",
       {.temperature = 1.3f,
        .top_k = 7,
        .top_p = 0.95f,
        .min_p = 0.02f,
        .repetition_penalty = 1.3f,
        .presence_penalty = 0.4f,
        .frequency_penalty = -0.5f,
        .logit_bias = {{7, 1.0f}}}},
  };
  return cases;
}

Law law_of_three_tokens(const SamplingParams& sampling) {
  const NaiveTarget target(LawModels::get().target());
  std::vector<int32_t> text = kLawPrompt;
  Law law;
  extend(target, sampling, text, 1.0, law);
  return law;
}

TokenEngineOptions law_options() {
  return {.threads = 1,
          .isa = float32_isa(),
          .max_sequences = 32,
          .max_positions = 16,
          .max_width = kLawWidth,
          .num_choices = kLawIds};
}

MakeDrafts law_drafter(TinyFamily family) {
  return
      [family](const Target& target) { return open_drafter(LawModels::get().drafter(family), target, law_options()); };
}

ThreeTokens draw_three_tokens(Decoder& decoder, const SamplingParams& sampling, int64_t texts,
                              const std::vector<int32_t>& widths) {
  std::vector<TokenRequest> requests;
  for (int64_t i = 0; i < texts; ++i) {
    requests.push_back({.prompt_ids = kLawPrompt,
                        .max_tokens = 5,
                        .width = widths[static_cast<size_t>(i) % widths.size()],
                        .sampling = sampling});
    requests.back().sampling.seed = static_cast<uint64_t>(i);
    requests.back().expects_acceptance = true;
  }
  ThreeTokens drawn{.counts = std::vector<int64_t>(kLawIds * kLawIds * kLawIds)};
  for (const TokenResult& result : decoder.run(requests)) {
    const int32_t cell = (result.ids[0] * kLawIds + result.ids[1]) * kLawIds + result.ids[2];
    ++drawn.counts[static_cast<size_t>(cell)];
    for (const SequenceCycle& cycle : result.cycles) {
      drawn.accepted += cycle.accepted;
      drawn.tested += std::min(cycle.accepted + 1, cycle.width);
      drawn.expected += cycle.expected;
    }
  }
  return drawn;
}

std::string name_of(TinyFamily family) {
  if (family == TinyFamily::dflash) return "DFlash";
  return family == TinyFamily::dflash2 ? "DFlash2" : "DSpark";
}

}  // namespace blockdraft::test
