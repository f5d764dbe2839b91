// The rules of acceptance, for engines that verify drafts themselves (drafter.h). Pure functions: thread-safe, nothing
// is kept.
//
//   greedy   choices are the target's most likely tokens                       accept_greedy
//   coupled  choices are drawn by choose_token with the seed of the query      accept_greedy
//   ratio    drafts are tested with their laws against the target's            to_probabilities, accept_ratio
//
// Penalties, biases and masks of your own go into the target's logits first, row by row, as if the drafts before the
// row were text.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "blockdraft/result.h"
#include "blockdraft/sampling.h"

namespace blockdraft {

// What a sequence commits after a verification.
struct AcceptedDrafts {
  int32_t accepted = 0;    // leading drafts that are kept, whether or not they fit
  int32_t produced = 0;    // tokens to append
  bool at_stop = false;    // the last of them is a stop token
  bool at_length = false;  // none may follow
};

// Of the drafts that equal the target's choices, up to the first that does not, and the target's own token after them:
// at most `remaining` tokens, ending at the first stop token. Only these tokens are looked at, so a stop token among
// rejected drafts has no effect. The tokens to append are choices[0 .. produced - 1].
//   drafts:  [width], draft j is the guess for position s + 1 + j; may be empty.
//   choices: [width + 1], choice j is the target's token for position s + 1 + j given the drafts before it.
// Errors: invalid_argument if `choices` is not one longer than `drafts`, or `remaining` is below 1.
Result<AcceptedDrafts> accept_greedy(std::span<const int32_t> drafts, std::span<const int32_t> choices,
                                     int64_t remaining, std::span<const int32_t> stop_ids = {});

// The token of a position by the target's logits, [ids]: the largest one's id, of equals the lowest, or drawn with the
// noise that a coupled query drafts with. The same seed gives the same text, whoever drafts.
// Errors: invalid_argument for no logits and a field of `sampling` out of range; numeric for a logit that is NaN, and,
// if a token is drawn, for one that is +infinity or none that is finite.
Result<int32_t> choose_token(std::span<const float> logits, const Sampling& sampling, int32_t position);

// Turns a row of logits, [ids], into the law that `sampling` draws from, in place; at temperature 0 all of it lies on
// the largest. Errors: those of choose_token; the row is then unspecified.
Status to_probabilities(std::span<float> logits, const Sampling& sampling);

struct RatioTrial {
  std::span<const int32_t> drafts;  // [width]; may be empty
  std::span<const TokenLaw> laws;  // [width] that each was drawn from (Proposal::laws); one without probabilities means
                                   // that its draft was certain
  // [width + 1, ids] row-major: row j is the target's law of position + 1 + j given the drafts before it. Rows behind
  // the first draft that is not kept are not read. The row of that draft is overwritten.
  std::span<float> probabilities;
  int32_t position = 0;  // of the anchor
  uint64_t seed = 0;     // of the query's Sampling
  uint32_t choice = 0;   // the same
  int64_t remaining = 0;
  std::span<const int32_t> stop_ids = {};
};

// Keeps a draft with probability min(1, p / q); in the place of the first that is not kept comes a token drawn from
// max(p - q, 0), behind the last one a token drawn from p (Leviathan et al. 2023; Chen et al. 2023). So the text has
// the law of the target's rows, whatever drafted. End of text and length as accept_greedy has them.
//   tokens: resized to what is to be appended, `produced` of them.
// Errors: invalid_argument, naming the draft or row: sizes that do not fit, an id outside of the rows or twice in a
// law, a draft that its law does not give, and probabilities that are negative, no numbers or do not sum to 1 within
// 0.001.
Result<AcceptedDrafts> accept_ratio(const RatioTrial& trial, std::vector<int32_t>& tokens);

}  // namespace blockdraft
