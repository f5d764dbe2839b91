// The acceptance rule: which of the drafted tokens a sequence keeps. Pure functions of token ids.
#pragma once

#include <cstdint>
#include <span>

namespace blockdraft {

// Acceptance of drafts that equal the target's own choice for their position, greedy (spec 6.2) or drawn with the same
// noise (docs/architecture.md): the number of leading ones that do.
//   drafts:  [width], draft j is the guess for position s + 1 + j.
//   choices: [width + 1], choice j is the target's token for position s + 1 + j given the drafts before it.
int32_t accepted_prefix(std::span<const int32_t> drafts, std::span<const int32_t> choices);

// What a sequence commits in one cycle (spec 6.5).
struct Committed {
  int32_t accepted = 0;    // leading drafts that are kept, whether or not they fit
  int32_t produced = 0;    // tokens to append: choices[0 .. produced - 1], all of them the target's own
  bool at_stop = false;    // the last of them is a stop token
  bool at_length = false;  // no more may follow
};

// Of `accepted` drafts and the token after them: at most `remaining` tokens, ending at the first stop token. Only these
// tokens are looked at, so a stop token among rejected drafts has no effect. remaining >= 1.
//   choices: [more than accepted], the target's tokens: the accepted drafts, then the one that follows them.
Committed commit(int32_t accepted, std::span<const int32_t> choices, int64_t remaining,
                 std::span<const int32_t> stop_ids);

// The same with the number of accepted drafts that accepted_prefix gives.
Committed commit_greedy(std::span<const int32_t> drafts, std::span<const int32_t> choices, int64_t remaining,
                        std::span<const int32_t> stop_ids);

}  // namespace blockdraft
