#include "draft/candidate_selection.h"

#include <algorithm>
#include <span>

#include "draft/row_sampling.h"
#include "ops/argmax.h"
#include "ops/candidate_walk.h"
#include "ops/ids.h"
#include "ops/linear.h"
#include "ops/top_k.h"
#include "tensor/host_link.h"
#include "tensor/recorder.h"

namespace blockdraft {
namespace {

// Ids and logits of the best candidates of every row.
void find_candidates(Context& context, const SelectionInput& input, int32_t* ids, TensorView unary) {
  for_each_logit_group(context, input.hidden, input.head, [&](int64_t first, const TensorView& logits) {
    record(context, "logits", logits);
    top_k(context, ids + first * unary.dim(1), rows_of(unary, first, logits.dim(0)), logits, input.head.num_choices);
  });
}

// What the walk adds to the scores so that its largest is a draw with probabilities softmax(score / T). Only the
// temperature acts on a draft's law (spec 4.2).
const float* noise_of(Context& context, const SelectionInput& input, const int32_t* candidates, TensorView noise) {
  const RowSampling* samplings = on_device(context, samplings_of_drafts(host_arena(context), input.requests));
  candidate_noise(context, noise, candidates, samplings);
  return noise.f32();
}

ProbabilityRow law_of_candidates(Arena& law_memory, const int32_t* candidates, const float* scores, int64_t k,
                                 float temperature) {
  int32_t* ids = law_memory.take_i32(k);
  float* values = law_memory.take_f32({1, k}).f32();
  std::copy_n(candidates, k, ids);
  for (int64_t c = 0; c < k; ++c) values[c] = scores[c] / temperature;
  softmax_row(values, values, k);
  return {.ids = ids, .values = values, .count = k};
}

void hand_out_laws(const Context& context, const SelectionInput& input, const int32_t* device_candidates,
                   ConstTensorView scores, const Drafts& drafts) {
  const int64_t rows = scores.dim(0);
  const int64_t k = scores.dim(1);
  const int32_t* candidates = on_host(context, device_candidates, rows * k);
  const float* values = on_host(context, scores.f32(), rows * k);
  const int32_t* ids = on_host<int32_t>(context, drafts.places(), rows);
  int64_t row = 0;
  for (const DraftRequest& request : input.requests) {
    const int64_t end = row + request.width;
    for (; row < end; ++row) {
      if (!request.sampling.wants_law || ids[row] == kNotANumber) continue;
      drafts.laws[static_cast<size_t>(row)] = law_of_candidates(*drafts.law_memory, candidates + row * k,
                                                                values + row * k, k, request.sampling.row.temperature);
    }
  }
}

bool any_wants_law(std::span<const DraftRequest> requests) {
  return std::ranges::any_of(requests, [](const DraftRequest& request) { return request.sampling.wants_law; });
}

}  // namespace

void CandidateSelection::select(Context& context, const SelectionInput& input, const Drafts& drafts) const {
  const ArenaScope scope(*context.arena);
  const ArenaScope host_scope(host_arena(context));
  const int64_t rows = input.hidden.dim(0);
  const int64_t k = config_.selector_top_k;
  const size_t num_sequences = input.requests.size();
  int32_t* candidates = context.arena->take_i32(rows * k);
  const TensorView unary = context.arena->take_f32({rows, k});
  const TensorView scores = context.arena->take_f32({rows, k});
  const TensorView edge = context.arena->take_f32({rows, config_.selector_rank});
  const std::span anchors(host_arena(context).take_i32(std::ssize(input.requests)), num_sequences);
  const std::span first_row(host_arena(context).take_i32(std::ssize(input.requests) + 1), num_sequences + 1);
  first_row[0] = 0;
  for (size_t i = 0; i < num_sequences; ++i) {
    anchors[i] = input.requests[i].anchor_id;
    first_row[i + 1] = first_row[i] + input.requests[i].width;
  }

  find_candidates(context, input, candidates, unary);
  map_ids(context, candidates, input.device_map, nullptr, rows * k);
  const float* noise =
      any_drawn(input.requests) ? noise_of(context, input, candidates, context.arena->take_f32({rows, k})) : nullptr;
  linear(context, {.out = edge, .x = input.hidden, .weights = {&weights_.hidden_projection, 1}});
  candidate_walk(context, {.drafts = drafts.places(),
                           .scores = scores,
                           .candidates = candidates,
                           .unary = unary,
                           .noise = noise,
                           .edge = edge,
                           .predecessor = weights_.predecessor_codebook,
                           .successor = weights_.successor_codebook,
                           .anchors = on_device(context, anchors),
                           .first_row = on_device(context, first_row),
                           .num_sequences = static_cast<int32_t>(num_sequences)});
  propose_all(input.requests, drafts.widths);
  if (any_wants_law(input.requests)) hand_out_laws(context, input, candidates, scores, drafts);
  record(context, "candidates", {candidates, DType::i32, Shape{rows, k}, k});
  record(context, "selector_scores", scores);
}

size_t CandidateSelection::scratch_bytes(const OutputHead& head, int32_t num_threads, int64_t drafts) const {
  const int64_t k = config_.selector_top_k;
  // Candidates, anchors and first rows are integers of the same size as floats; sequences are at most as many as
  // drafts.
  return 4 * arena_bytes_f32(drafts * k) + arena_bytes_f32(drafts * config_.selector_rank) +
         2 * arena_bytes_f32(drafts + 1) + row_samplings_bytes(drafts) +
         std::max(logit_group_scratch_bytes(head.weight, drafts),
                  linear_scratch_bytes(drafts, weights_.hidden_projection.in_features)) +
         candidate_walk_scratch_bytes(num_threads, config_.selector_rank);
}

int64_t CandidateSelection::flops_per_row() const {
  const int64_t walk = 2 * config_.selector_top_k * config_.selector_rank;
  return walk + 2 * weights_.hidden_projection.out_features * weights_.hidden_projection.in_features;
}

}  // namespace blockdraft
