// Whether a drafter fits a target.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "blockdraft/result.h"
#include "draft/drafter_config.h"

namespace blockdraft {

// What a drafter has to know of a target.
struct TargetFacts {
  int64_t hidden_size = 0;
  int64_t num_hidden_layers = 0;
  int64_t vocab_size = 0;   // rows of the embedding table and the head
  int64_t num_choices = 0;  // real ids; rows beyond them are padding. 0: not known, then only equal tables fit
};

struct PairingCheck {
  std::string name;
  std::string target;
  std::string drafter;
  bool fits = true;
};

// Tables are padded beyond the last real id, by different amounts for the same vocabulary; by less than this.
inline constexpr int64_t kMaxVocabularyPadding = 2048;

// Item by item: hidden size, layers, layer ids, mask id, vocabulary, and of DFlash2 the number of candidates (spec 1.3,
// 1.5, 1.10, 2.8).
std::vector<PairingCheck> check_pairing(const DrafterConfig& drafter, const TargetFacts& target);

// The first check that does not fit, as an error that names the drafter's config.
Status require_pairing(const DrafterConfig& drafter, const TargetFacts& target);

}  // namespace blockdraft
