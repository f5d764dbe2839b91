#include "cli/check_report.h"

#include <algorithm>
#include <vector>

#include <fmt/core.h>

#include "base/json.h"

namespace blockdraft {
namespace {

std::optional<int32_t> id_at(const std::vector<int32_t>& ids, size_t index) {
  if (index >= ids.size()) return std::nullopt;
  return ids[index];
}

std::string token_text(const Tokenizer& tokenizer, const std::optional<int32_t>& id) {
  return id ? std::string(tokenizer.token_bytes(*id)) : std::string();
}

std::string describe(const Tokenizer& tokenizer, const std::optional<int32_t>& id) {
  if (!id) return "the end of the text";
  return fmt::format("{} '{}'", *id, printable(token_text(tokenizer, id)));
}

std::string verdict(const CheckTotals& totals, const Tokenizer& tokenizer) {
  if (totals.mismatches == 0) {
    return fmt::format("equal: {} tokens of {} prompts, 0 mismatches\n", totals.tokens, totals.prompts);
  }
  const Divergence& first = *totals.first_divergence;
  return fmt::format(
      "different: {} of {} prompts; first in prompt '{}' at generated token {} (counted from 0): plain {}, drafted "
      "{}\n",
      totals.mismatches, totals.prompts, first.prompt, first.token, describe(tokenizer, first.plain_id),
      describe(tokenizer, first.drafted_id));
}

Json json_divergence(const std::optional<Divergence>& divergence, const Tokenizer& tokenizer) {
  if (!divergence) return nullptr;
  const auto id = [](const std::optional<int32_t>& value) { return value ? Json(*value) : Json(nullptr); };
  return {{"prompt", divergence->prompt},
          {"token", divergence->token},
          {"plain_id", id(divergence->plain_id)},
          {"drafted_id", id(divergence->drafted_id)},
          {"plain_text", token_text(tokenizer, divergence->plain_id)},
          {"drafted_text", token_text(tokenizer, divergence->drafted_id)}};
}

}  // namespace

std::optional<Divergence> compare(const std::string& prompt, const Generation& plain, const Generation& drafted) {
  if (plain.ids == drafted.ids) return std::nullopt;
  const auto [at, unused] = std::mismatch(plain.ids.begin(), plain.ids.end(), drafted.ids.begin(), drafted.ids.end());
  const size_t token = static_cast<size_t>(at - plain.ids.begin());
  return Divergence{prompt, token, id_at(plain.ids, token), id_at(drafted.ids, token)};
}

std::string human_check(const CheckTotals& totals, const Tokenizer& tokenizer) {
  const auto row = [](const char* way, const AcceptanceTotals& acceptance, const SpeedTotals& speed, double ratio) {
    return fmt::format("{:<8} {} tokens a target pass, {:.1f} tokens/s, {:.2f}x\n", way,
                       decimal(acceptance.length_all(), 2), speed.tokens_per_s(), ratio);
  };
  return row("plain", totals.plain_acceptance, totals.plain_speed, 1) +
         row("drafted", totals.drafted_acceptance, totals.drafted_speed, totals.speedup()) + verdict(totals, tokenizer);
}

Json json_check(const CheckTotals& totals, const Tokenizer& tokenizer) {
  return {{"prompts", totals.prompts},
          {"tokens", totals.tokens},
          {"mismatches", totals.mismatches},
          {"first_divergence", json_divergence(totals.first_divergence, tokenizer)},
          {"acceptance_length", json_or_null(totals.drafted_acceptance.length())},
          {"acceptance_length_all", json_or_null(totals.drafted_acceptance.length_all())},
          {"acceptance_by_position", totals.drafted_acceptance.by_position()},
          {"acceptance_by_depth", json_by_depth(totals.drafted_acceptance)},
          {"plain_tokens_per_s", totals.plain_speed.tokens_per_s()},
          {"drafted_tokens_per_s", totals.drafted_speed.tokens_per_s()},
          {"speedup", totals.speedup()}};
}

}  // namespace blockdraft
