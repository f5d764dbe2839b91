// One text in the making.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "engine/width_policy.h"
#include "verify/accept.h"
#include "verify/penalties.h"
#include "verify/sampling_params.h"

namespace blockdraft {

// What an engine is asked to decode, in token ids.
struct TokenRequest {
  std::vector<int32_t> prompt_ids;  // at least one
  int64_t max_tokens = 0;           // at least 0
  int32_t width = 0;                // drafts asked for in a cycle; 0: plain decoding
  bool adapts_width = false;      // from cycle to cycle 0 to `width` of them, whatever is fastest. The text is the same
  std::vector<int32_t> stop_ids;  // a text ends with the first of these that it generates
  SamplingParams sampling;        // as they are: the largest logit of each row
  // Fills SequenceCycle::expected. Costs a pass over the laws of every draft; needs sampling that draws.
  bool expects_acceptance = false;
  // Called with every generated token, in order, as soon as it is committed. False ends the text after this token.
  std::function<bool(int32_t)> on_token;
};

// Of the drafts: what ratio acceptance and the expected acceptance need.
inline bool wants_laws(const TokenRequest& request) {
  return request.width > 0 && (request.sampling.uses_ratio() || request.expects_acceptance);
}

// Requests whose cycles take about the same time: one kind has no logits in memory, the next draws, the last needs
// laws.
enum class CostKind { greedy, drawn, with_laws };
inline constexpr size_t kNumCostKinds = 3;
inline CostKind cost_kind(const TokenRequest& request) {
  if (wants_laws(request)) return CostKind::with_laws;
  return request.sampling.is_plain() ? CostKind::greedy : CostKind::drawn;
}

enum class EndReason { at_stop, at_length, by_caller };

// One propose + verify round of one sequence.
struct SequenceCycle {
  int32_t width = 0;     // drafts verified
  int32_t accepted = 0;  // of those
  int32_t produced = 0;  // tokens committed
  int32_t asked = 0;     // drafts asked for
  // Drafts that the laws let expect to be accepted: the probability of every draft that was reached, the first that was
  // not kept included, summed up (verify/expected_acceptance.h). 0 unless the request asked for it.
  double expected = 0;
};

struct TokenResult {
  std::vector<int32_t> ids;  // generated; with at_stop the last one is the stop token
  EndReason end = EndReason::at_length;
  std::vector<SequenceCycle> cycles;
};

// A running request. Positions 0 .. position() - 1 are in the target's state; the token there is the anchor.
struct Sequence {
  size_t request = 0;  // index in the call
  int32_t slot = 0;
  TokenRequest input;
  std::vector<int32_t> tokens;  // prompt and generated ids
  int64_t max_length = 0;       // of `tokens`
  TokenHistory history;         // of `tokens`, if the request penalizes any
  bool ended = false;
  bool is_trial = false;  // decoded for its times only: nothing is counted
  std::optional<AdaptiveWidth> adaptive;
  TokenResult result;

  // Taps of the newest verified rows, not yet in the drafter's context.
  int32_t first_tap_row = 0;
  int32_t num_tap_rows = 0;

  int32_t position() const { return static_cast<int32_t>(tokens.size()) - 1; }
  int64_t remaining() const { return max_length - static_cast<int64_t>(tokens.size()); }
  // Appends what a cycle committed, telling the caller of each token. Returns how many it appended: fewer than given
  // if the caller ends the text. Sets `ended` and the result's reason when the text is complete.
  int32_t append(std::span<const int32_t> ids, const Committed& committed);
  std::span<const int32_t> generated() const { return std::span(tokens).subspan(input.prompt_ids.size()); }
};

}  // namespace blockdraft
