#include "draft/argmax_selection.h"

#include "draft/draft_vocabulary.h"

namespace blockdraft {

void ArgmaxSelection::select(Context& context, const SelectionInput& input, const Drafts& drafts) const {
  head_argmax(context, drafts.ids.data(), input.hidden, input.head);
  to_target_ids(drafts.ids, input.draft_to_target);
  propose_all(input.requests, drafts.widths);
}

size_t ArgmaxSelection::scratch_bytes(const OutputHead& head, int32_t, int64_t drafts) const {
  return head_argmax_scratch_bytes(head.weight, drafts);
}

}  // namespace blockdraft
