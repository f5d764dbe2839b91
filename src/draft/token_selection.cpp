#include "draft/token_selection.h"

#include "ops/argmax.h"

namespace blockdraft {

void ArgmaxSelection::select(Context& context, const SelectionInput& input, std::span<int32_t> drafts) const {
  head_argmax(context, drafts.data(), input.hidden, input.head);
  if (input.draft_to_target.empty()) return;
  for (int32_t& id : drafts) {
    if (id != kNotANumber) id = input.draft_to_target[static_cast<size_t>(id)];
  }
}

size_t ArgmaxSelection::scratch_bytes(const OutputHead& head, int64_t rows) const {
  return head_argmax_scratch_bytes(head.weight, rows);
}

}  // namespace blockdraft
