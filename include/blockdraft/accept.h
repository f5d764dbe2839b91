// The greedy acceptance rule, for engines that verify drafts themselves (drafter.h). Pure functions of token ids:
// thread-safe, nothing is kept.
#pragma once

#include <cstdint>
#include <span>

#include "blockdraft/result.h"

namespace blockdraft {

// What a sequence commits after a verification.
struct GreedyAcceptance {
  int32_t accepted = 0;    // drafts that agree with the target, whether or not they fit
  int32_t produced = 0;    // tokens to append: choices[0 .. produced - 1], all of them the target's own
  bool at_stop = false;    // the last of them is a stop token
  bool at_length = false;  // none may follow
};

// Of the drafts that equal the target's choices, up to the first that does not, and the target's own token after them:
// at most `remaining` tokens, ending at the first stop token. Only these tokens are looked at, so a stop token among
// rejected drafts has no effect.
//   drafts:  [width], draft j is the guess for position s + 1 + j; may be empty.
//   choices: [width + 1], choice j is the target's token for position s + 1 + j given the drafts before it.
// Errors: invalid_argument if `choices` is not one longer than `drafts`, or `remaining` is below 1.
Result<GreedyAcceptance> accept_greedy(std::span<const int32_t> drafts, std::span<const int32_t> choices,
                                       int64_t remaining, std::span<const int32_t> stop_ids = {});

}  // namespace blockdraft
