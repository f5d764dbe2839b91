#include "draft/argmax_selection.h"

#include "draft/draft_vocabulary.h"
#include "draft/row_sampling.h"
#include "ops/argmax.h"
#include "tensor/recorder.h"

namespace blockdraft {
namespace {

// As the target draws: the same filters on the drafter's logits, and where texts are coupled the same noise.
void draw(Context& context, const SelectionInput& input, const Drafts& drafts) {
  const ArenaScope scope(*context.arena);
  const RowSampling* samplings = samplings_of_drafts(*context.arena, input.requests);
  const int64_t num_choices = input.head.num_choices;
  const int32_t* target_ids = input.draft_to_target.empty() ? nullptr : input.draft_to_target.data();
  const int32_t* owners = owners_of_drafts(*context.arena, input.requests);
  for_each_logit_group(context, input.hidden, input.head, [&](int64_t first, const TensorView& logits) {
    record(context, "logits", logits);
    int32_t* ids = drafts.ids.data() + first;
    argmax(context, ids, logits, num_choices);
    to_scores(context, logits, num_choices, samplings + first);
    sample(context, ids, logits, num_choices, samplings + first, target_ids);
    for (int64_t r = 0; r < logits.dim(0); ++r) {
      const DraftRequest& request = input.requests[static_cast<size_t>(owners[first + r])];
      if (!request.sampling.wants_law || ids[r] == kNotANumber) continue;
      drafts.laws[static_cast<size_t>(first + r)] =
          law_of_scores(*drafts.law_memory, logits.row(r), num_choices, target_ids);
    }
  });
}

}  // namespace

void ArgmaxSelection::select(Context& context, const SelectionInput& input, const Drafts& drafts) const {
  if (any_drawn(input.requests)) {
    draw(context, input, drafts);
  } else if (context.recorder == nullptr) {
    head_argmax(context, drafts.ids.data(), input.hidden, input.head);
  } else {
    for_each_logit_group(context, input.hidden, input.head, [&](int64_t first, const TensorView& logits) {
      record(context, "logits", logits);
      argmax(context, drafts.ids.data() + first, logits, input.head.num_choices);
    });
  }
  to_target_ids(drafts.ids, input.draft_to_target);
  propose_all(input.requests, drafts.widths);
}

size_t ArgmaxSelection::scratch_bytes(const OutputHead& head, int32_t, int64_t drafts) const {
  return logit_group_scratch_bytes(head.weight, drafts) + row_samplings_bytes(drafts) + arena_bytes_f32(drafts);
}

}  // namespace blockdraft
