#include "blockdraft/accept.h"

#include "base/error.h"
#include "verify/accept.h"

namespace blockdraft {

Result<GreedyAcceptance> accept_greedy(std::span<const int32_t> drafts, std::span<const int32_t> choices,
                                       int64_t remaining, std::span<const int32_t> stop_ids) {
  if (choices.size() != drafts.size() + 1) {
    return make_error(Code::invalid_argument, "{} choices for {} drafts, expected {}", choices.size(), drafts.size(),
                      drafts.size() + 1);
  }
  if (remaining < 1) return make_error(Code::invalid_argument, "remaining is {}, expected at least 1", remaining);
  const Committed committed = commit_greedy(drafts, choices, remaining, stop_ids);
  return GreedyAcceptance{committed.accepted, committed.produced, committed.at_stop, committed.at_length};
}

}  // namespace blockdraft
