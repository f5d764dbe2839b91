#include "verify/accept.h"

#include <algorithm>

#include "base/check.h"

namespace blockdraft {

int32_t accepted_prefix(std::span<const int32_t> drafts, std::span<const int32_t> choices) {
  CHECK(choices.size() == drafts.size() + 1);
  return static_cast<int32_t>(std::ranges::mismatch(drafts, choices).in1 - drafts.begin());
}

Committed commit(int32_t accepted, std::span<const int32_t> choices, int64_t remaining,
                 std::span<const int32_t> stop_ids) {
  CHECK(remaining >= 1 && static_cast<size_t>(accepted) < choices.size());
  Committed result{.accepted = accepted};
  // The accepted drafts are the target's choices too; the one after them is the bonus.
  const auto fitting = static_cast<size_t>(std::min<int64_t>(accepted + 1, remaining));
  const std::span<const int32_t> kept = choices.first(fitting);
  const auto stop = std::ranges::find_first_of(kept, stop_ids);
  result.at_stop = stop != kept.end();
  result.produced = static_cast<int32_t>(stop - kept.begin()) + (result.at_stop ? 1 : 0);
  result.at_length = result.produced == remaining;
  return result;
}

Committed commit_greedy(std::span<const int32_t> drafts, std::span<const int32_t> choices, int64_t remaining,
                        std::span<const int32_t> stop_ids) {
  return commit(accepted_prefix(drafts, choices), choices, remaining, stop_ids);
}

}  // namespace blockdraft
