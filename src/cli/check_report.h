// What `check` found, and how it is shown.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "base/json_fwd.h"
#include "blockdraft/engine.h"
#include "cli/decode.h"
#include "cli/report.h"

namespace blockdraft {

// The first token that differs. An id is missing where that text has ended.
struct Divergence {
  std::string prompt;
  size_t token = 0;
  std::optional<int32_t> plain_id, drafted_id;
};

struct CheckTotals {
  explicit CheckTotals(int32_t full_width) : plain_acceptance(0), drafted_acceptance(full_width) {}

  int64_t prompts = 0;
  int64_t tokens = 0;
  int64_t mismatches = 0;
  std::optional<Divergence> first_divergence;
  SpeedTotals plain_speed, drafted_speed;
  AcceptanceTotals plain_acceptance, drafted_acceptance;

  double speedup() const {
    const double plain = plain_speed.tokens_per_s();
    return plain > 0 ? drafted_speed.tokens_per_s() / plain : 0;
  }
};

// Nothing if both texts are the same tokens.
std::optional<Divergence> compare(const std::string& prompt, const Generation& plain, const Generation& drafted);

// One line each for plain and drafted decoding, and the verdict.
std::string human_check(const CheckTotals& totals, const Tokenizer& tokenizer);
Json json_check(const CheckTotals& totals, const Tokenizer& tokenizer);

}  // namespace blockdraft
