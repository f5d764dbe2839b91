// The acceptance rule: which of the drafted tokens a sequence keeps. Pure functions of token ids.
#pragma once

#include <cstdint>
#include <span>

namespace blockdraft {

// Greedy acceptance (spec 6.2): the number of leading drafts that equal the target's own choice for their position.
//   drafts:  [width], draft j is the guess for position s + 1 + j.
//   choices: [width + 1], choice j is the target's token for position s + 1 + j given the drafts before it.
int32_t accepted_prefix(std::span<const int32_t> drafts, std::span<const int32_t> choices);

// What a sequence commits in one cycle (spec 6.5).
struct Committed {
  int32_t accepted = 0;    // drafts that agree with the target, whether or not they fit
  int32_t produced = 0;    // tokens to append: choices[0 .. produced - 1], all of them the target's own
  bool at_stop = false;    // the last of them is a stop token
  bool at_length = false;  // no more may follow
};

// Of the accepted drafts and the bonus after them: at most `remaining` tokens, ending at the first stop token.
// Only these tokens are looked at, so a stop token among rejected drafts has no effect. remaining >= 1.
Committed commit_greedy(std::span<const int32_t> drafts, std::span<const int32_t> choices, int64_t remaining,
                        std::span<const int32_t> stop_ids);

}  // namespace blockdraft
