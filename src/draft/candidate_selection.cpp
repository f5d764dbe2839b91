#include "draft/candidate_selection.h"

#include <algorithm>

#include "draft/draft_vocabulary.h"
#include "ops/candidate_walk.h"
#include "ops/linear.h"
#include "ops/top_k.h"

namespace blockdraft {
namespace {

// Ids and logits of the best candidates of every row, a few rows of logits at a time.
void find_candidates(Context& context, const SelectionInput& input, int32_t* ids, TensorView unary) {
  const ArenaScope scope(*context.arena);
  const int64_t rows = input.hidden.dim(0);
  const TensorView logits = context.arena->take_f32({std::min(rows, kLogitRows), input.head.weight.out_features});
  for (int64_t first = 0; first < rows; first += kLogitRows) {
    const int64_t count = std::min(kLogitRows, rows - first);
    const TensorView part = rows_of(logits, 0, count);
    head_logits(context, part, rows_of(input.hidden, first, count), input.head);
    top_k(context, ids + first * unary.dim(1), rows_of(unary, first, count), part, input.head.num_choices);
  }
}

}  // namespace

void CandidateSelection::select(Context& context, const SelectionInput& input, const Drafts& drafts) const {
  const ArenaScope scope(*context.arena);
  const int64_t rows = input.hidden.dim(0);
  const int64_t k = config_.selector_top_k;
  const auto num_sequences = static_cast<int32_t>(input.requests.size());
  int32_t* candidates = context.arena->take_i32(rows * k);
  const TensorView unary = context.arena->take_f32({rows, k});
  const TensorView scores = context.arena->take_f32({rows, k});
  const TensorView edge = context.arena->take_f32({rows, config_.selector_rank});
  int32_t* anchors = context.arena->take_i32(num_sequences);
  int32_t* first_row = context.arena->take_i32(num_sequences + 1);
  first_row[0] = 0;
  for (int32_t i = 0; i < num_sequences; ++i) {
    anchors[i] = input.requests[static_cast<size_t>(i)].anchor_id;
    first_row[i + 1] = first_row[i] + input.requests[static_cast<size_t>(i)].width;
  }

  find_candidates(context, input, candidates, unary);
  to_target_ids({candidates, static_cast<size_t>(rows * k)}, input.draft_to_target);
  linear(context, {.out = edge, .x = input.hidden, .weights = {&weights_.hidden_projection, 1}});
  candidate_walk(context, {.drafts = drafts.ids.data(),
                           .scores = scores,
                           .candidates = candidates,
                           .unary = unary,
                           .edge = edge,
                           .predecessor = weights_.predecessor_codebook,
                           .successor = weights_.successor_codebook,
                           .anchors = anchors,
                           .first_row = first_row,
                           .num_sequences = num_sequences});
  propose_all(input.requests, drafts.widths);
  if (input.trace != nullptr) {
    input.trace->candidates.assign(candidates, candidates + rows * k);
    input.trace->scores.assign(scores.f32(), scores.f32() + rows * k);
  }
}

size_t CandidateSelection::scratch_bytes(const OutputHead& head, int32_t num_threads, int64_t drafts) const {
  const int64_t k = config_.selector_top_k;
  // Candidates, anchors and first rows are integers of the same size as floats; sequences are at most as many as
  // drafts.
  return 3 * arena_bytes_f32(drafts * k) + arena_bytes_f32(drafts * config_.selector_rank) +
         2 * arena_bytes_f32(drafts + 1) + head_argmax_scratch_bytes(head.weight, drafts) +
         candidate_walk_scratch_bytes(num_threads, config_.selector_rank);
}

int64_t CandidateSelection::flops_per_row() const {
  const int64_t walk = 2 * config_.selector_top_k * config_.selector_rank;
  return walk + 2 * weights_.hidden_projection.out_features * weights_.hidden_projection.in_features;
}

}  // namespace blockdraft
