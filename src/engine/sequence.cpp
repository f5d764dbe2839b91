#include "engine/sequence.h"

namespace blockdraft {

int32_t Sequence::append(std::span<const int32_t> ids, const Committed& committed) {
  for (size_t i = 0; i < ids.size(); ++i) {
    tokens.push_back(ids[i]);
    if (history.is_kept()) history.add(ids[i]);
    if (input.on_token && !input.on_token(ids[i])) {
      ended = true;
      result.end = EndReason::by_caller;
      return static_cast<int32_t>(i) + 1;
    }
  }
  if (committed.at_stop || committed.at_length) {
    ended = true;
    result.end = committed.at_stop ? EndReason::at_stop : EndReason::at_length;
  }
  return static_cast<int32_t>(ids.size());
}

}  // namespace blockdraft
