#include "draft/argmax_selection.h"

#include "draft/row_sampling.h"
#include "ops/argmax.h"
#include "ops/ids.h"
#include "tensor/host_link.h"
#include "tensor/recorder.h"

namespace blockdraft {
namespace {

const int32_t* ids_of_columns(const SelectionInput& input) {
  return input.draft_to_target.empty() ? nullptr : input.draft_to_target.data();
}

// As the target draws: the same filters on the drafter's logits, and where texts are coupled the same noise.
void draw(Context& context, const SelectionInput& input, const Drafts& drafts) {
  const ArenaScope scope(host_arena(context));
  const RowSampling* samplings = on_device(context, samplings_of_drafts(host_arena(context), input.requests));
  const int64_t num_choices = input.head.num_choices;
  const int32_t* owners = owners_of_drafts(host_arena(context), input.requests);
  for_each_logit_group(context, input.hidden, input.head, [&](int64_t first, const TensorView& logits) {
    record(context, "logits", logits);
    int32_t* ids = drafts.places() + first;
    argmax(context, ids, logits, num_choices);
    to_scores(context, logits, num_choices, samplings + first);
    sample(context, ids, logits, num_choices, samplings + first, input.device_map);
    for (int64_t r = 0; r < logits.dim(0); ++r) {
      if (!input.requests[static_cast<size_t>(owners[first + r])].sampling.wants_law) continue;
      if (*on_host(context, ids + r, 1) == kNotANumber) continue;
      drafts.laws[static_cast<size_t>(first + r)] =
          law_of_scores(context, *drafts.law_memory, logits.row(r), num_choices, ids_of_columns(input));
    }
  });
}

}  // namespace

void ArgmaxSelection::select(Context& context, const SelectionInput& input, const Drafts& drafts) const {
  if (any_drawn(input.requests)) {
    draw(context, input, drafts);
  } else if (context.recorder == nullptr) {
    head_argmax(context, drafts.places(), input.hidden, input.head);
  } else {
    for_each_logit_group(context, input.hidden, input.head, [&](int64_t first, const TensorView& logits) {
      record(context, "logits", logits);
      argmax(context, drafts.places() + first, logits, input.head.num_choices);
    });
  }
  map_ids(context, drafts.places(), input.device_map, nullptr, std::ssize(drafts.ids));
  propose_all(input.requests, drafts.widths);
}

size_t ArgmaxSelection::scratch_bytes(const OutputHead& head, int32_t, int64_t drafts) const {
  return logit_group_scratch_bytes(head.weight, drafts) + row_samplings_bytes(drafts) + arena_bytes_f32(drafts);
}

}  // namespace blockdraft
