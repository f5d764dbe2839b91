// What the draft selections share where drafts are drawn.
#pragma once

#include <cstdint>
#include <span>

#include "draft/draft_source.h"
#include "ops/sample.h"
#include "tensor/buffer.h"

namespace blockdraft {

bool any_drawn(std::span<const DraftRequest> requests);

// How draft `index` of a request is drawn: position + 1 + index is its position.
RowSampling sampling_of_draft(const DraftRequest& request, int32_t index);

// The same with the temperature only: which filters act on a draft's law differs by family (spec 6.3).
RowSampling unfiltered(const RowSampling& sampling);

// An entry a draft, in the order of the requests. Of the CPU.
std::span<const RowSampling> samplings_of_drafts(Arena& arena, std::span<const DraftRequest> requests);

// [drafts] which request each draft is of.
int32_t* owners_of_drafts(Arena& arena, std::span<const DraftRequest> requests);

// The law that a row of scores stands for, in law_memory. Waits for a card. target_ids as in ops/sample.h, but of the
// CPU; the array is borrowed.
ProbabilityRow law_of_scores(const Context& context, Arena& law_memory, const float* scores, int64_t num_choices,
                             const int32_t* target_ids);

}  // namespace blockdraft
