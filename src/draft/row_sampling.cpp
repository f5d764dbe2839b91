#include "draft/row_sampling.h"

#include <algorithm>

#include "tensor/read_back.h"

namespace blockdraft {
namespace {

int64_t num_drafts(std::span<const DraftRequest> requests) {
  int64_t count = 0;
  for (const DraftRequest& request : requests) count += request.width;
  return count;
}

}  // namespace

bool any_drawn(std::span<const DraftRequest> requests) {
  return std::ranges::any_of(requests, [](const DraftRequest& r) { return r.sampling.row.temperature > 0.0f; });
}

RowSampling sampling_of_draft(const DraftRequest& request, int32_t index) {
  RowSampling sampling = request.sampling.row;
  sampling.noise.position = request.position + 1 + index;
  return sampling;
}

RowSampling unfiltered(const RowSampling& sampling) {
  return {.temperature = sampling.temperature, .noise = sampling.noise};
}

std::span<const RowSampling> samplings_of_drafts(Arena& arena, std::span<const DraftRequest> requests) {
  RowSampling* samplings = take_row_samplings(arena, num_drafts(requests));
  RowSampling* next = samplings;
  for (const DraftRequest& request : requests) {
    for (int32_t i = 0; i < request.width; ++i) *next++ = sampling_of_draft(request, i);
  }
  return {samplings, next};
}

int32_t* owners_of_drafts(Arena& arena, std::span<const DraftRequest> requests) {
  int32_t* owners = arena.take_i32(num_drafts(requests));
  int32_t* next = owners;
  for (size_t i = 0; i < requests.size(); ++i) next = std::fill_n(next, requests[i].width, static_cast<int32_t>(i));
  return owners;
}

ProbabilityRow law_of_scores(const Context& context, Arena& law_memory, const float* scores, int64_t num_choices,
                             const int32_t* target_ids) {
  float* probabilities = law_memory.take_f32({1, num_choices}).f32();
  if (context.cuda != nullptr) {
    read_back(*context.cuda, probabilities, scores, static_cast<size_t>(num_choices) * sizeof(float));
    scores = probabilities;
  }
  softmax_row(probabilities, scores, num_choices);
  return {.ids = target_ids, .values = probabilities, .count = num_choices};
}

}  // namespace blockdraft
