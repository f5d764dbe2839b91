#include "draft/pairing.h"

#include <algorithm>

#include <fmt/ranges.h>

#include "base/error.h"

namespace blockdraft {
namespace {

PairingCheck check_layer_count(const DrafterConfig& drafter, const TargetFacts& target) {
  const bool known = drafter.num_target_layers.has_value();
  return {"decoder layers", fmt::format("{}", target.num_hidden_layers),
          known ? fmt::format("trained for {}", *drafter.num_target_layers) : "not stated",
          !known || *drafter.num_target_layers == target.num_hidden_layers};
}

PairingCheck check_layer_ids(const DrafterConfig& drafter, const TargetFacts& target) {
  const auto [smallest, largest] = std::ranges::minmax_element(drafter.target_layer_ids);
  const char* first = *smallest < 0 ? "-1 (the embeddings)" : "0";
  return {"target layer ids", fmt::format("{} to {}", first, target.num_hidden_layers - 1),
          fmt::format("{}", fmt::join(drafter.target_layer_ids, ", ")), *largest < target.num_hidden_layers};
}

PairingCheck check_vocabulary(const DrafterConfig& drafter, const TargetFacts& target) {
  const int64_t found = drafter.transformer.vocab_size;
  const bool same_table = found == target.vocab_size;
  const bool known = target.num_choices > 0;
  const bool same_but_padding =
      known && found >= target.num_choices && found < target.num_choices + kMaxVocabularyPadding;
  const std::string real_ids = known ? fmt::format("{} real ids", target.num_choices) : "real ids not known";
  return {"vocabulary", fmt::format("{} rows, {}", target.vocab_size, real_ids), fmt::format("{} rows", found),
          same_table || same_but_padding};
}

PairingCheck check_candidates(const DrafterConfig& drafter, const TargetFacts& target) {
  const int64_t most = target.num_choices > 0 ? target.num_choices : target.vocab_size;
  return {"candidates a row", fmt::format("at most {}", most), fmt::format("{}", drafter.dflash2.selector_top_k),
          drafter.dflash2.selector_top_k <= most};
}

}  // namespace

std::vector<PairingCheck> check_pairing(const DrafterConfig& drafter, const TargetFacts& target) {
  const auto equal = [](const char* name, int64_t wanted, int64_t found) {
    return PairingCheck{name, fmt::format("{}", wanted), fmt::format("{}", found), wanted == found};
  };
  std::vector<PairingCheck> checks = {
      equal("hidden size", target.hidden_size, drafter.transformer.hidden_size),
      equal("width of a tap", target.hidden_size, drafter.target_hidden_size),
      check_layer_count(drafter, target),
      check_layer_ids(drafter, target),
      {"mask id", fmt::format("0 to {}", target.vocab_size - 1), fmt::format("{}", drafter.mask_token_id),
       drafter.mask_token_id < target.vocab_size},
      check_vocabulary(drafter, target),
  };
  if (drafter.family == DrafterFamily::dflash2) checks.push_back(check_candidates(drafter, target));
  return checks;
}

Status require_pairing(const DrafterConfig& drafter, const TargetFacts& target) {
  for (const PairingCheck& check : check_pairing(drafter, target)) {
    if (check.fits) continue;
    return make_error(Code::mismatch, "{}: the drafter does not fit the target: {} is {}, the target has {}",
                      drafter.origin, check.name, check.drafter, check.target);
  }
  return {};
}

}  // namespace blockdraft
