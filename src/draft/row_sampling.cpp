#include "draft/row_sampling.h"

#include <algorithm>
#include <memory>
#include <type_traits>

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

// The arena's memory is aligned for anything and not destroyed.
RowSampling* take_row_samplings(Arena& arena, int64_t count) {
  static_assert(std::is_trivially_destructible_v<RowSampling> && alignof(RowSampling) <= Arena::kAlignment);
  void* memory = arena.take_i32(static_cast<int64_t>(row_samplings_bytes(count) / sizeof(int32_t)));
  auto* samplings = static_cast<RowSampling*>(memory);
  std::uninitialized_default_construct_n(samplings, count);
  return samplings;
}

size_t row_samplings_bytes(int64_t count) {
  static_assert(sizeof(RowSampling) % sizeof(float) == 0);
  return arena_bytes_f32(count * static_cast<int64_t>(sizeof(RowSampling) / sizeof(float)));
}

RowSampling* samplings_of_drafts(Arena& arena, std::span<const DraftRequest> requests) {
  RowSampling* samplings = take_row_samplings(arena, num_drafts(requests));
  RowSampling* next = samplings;
  for (const DraftRequest& request : requests) {
    for (int32_t i = 0; i < request.width; ++i) *next++ = sampling_of_draft(request, i);
  }
  return samplings;
}

int32_t* owners_of_drafts(Arena& arena, std::span<const DraftRequest> requests) {
  int32_t* owners = arena.take_i32(num_drafts(requests));
  int32_t* next = owners;
  for (size_t i = 0; i < requests.size(); ++i) next = std::fill_n(next, requests[i].width, static_cast<int32_t>(i));
  return owners;
}

ProbabilityRow law_of_scores(Arena& law_memory, const float* scores, int64_t num_choices, const int32_t* target_ids) {
  float* probabilities = law_memory.take_f32({1, num_choices}).f32();
  softmax_row(probabilities, scores, num_choices);
  return {.ids = target_ids, .values = probabilities, .count = num_choices};
}

}  // namespace blockdraft
