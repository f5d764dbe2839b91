// From the block's hidden rows to draft tokens: where the drafter families differ.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "draft/draft_source.h"
#include "draft/drafter_config.h"
#include "draft/drafter_weights.h"
#include "nn/output_head.h"
#include "tensor/context.h"
#include "tensor/tensor_view.h"

namespace blockdraft {

struct SelectionInput {
  ConstTensorView hidden;                  // [sum of widths, hidden], final-normed, in the order of the drafts
  std::span<const DraftRequest> requests;  // whose widths and anchors these are
  const OutputHead& head;
  std::span<const int32_t> draft_to_target;  // empty: draft ids are target ids
  const int32_t* device_map = nullptr;       // the same where the ops are
  float confidence_threshold = 0.0f;         // DSpark: drafts from the first with less confidence on are not verified
};

// Immutable once made; scratch comes from the arena. A recorder gets, a row for each draft: "logits" [draft
// vocabulary]; DFlash2: "candidates" [K] by (logit descending, id ascending), "selector_scores" [K]; DSpark:
// "corrected_logits" with the Markov bias, "confidence_logits" [1] before the sigmoid.
class TokenSelection {
 public:
  virtual ~TokenSelection() = default;
  // drafts.places(): target ids, kNotANumber where a logit is NaN. drafts.widths: how many of each request's to verify.
  virtual void select(Context& context, const SelectionInput& input, const Drafts& drafts) const = 0;
  // Bytes of Drafts::law_memory for the laws of so many drafts.
  virtual size_t law_bytes(const OutputHead& head, int64_t drafts) const {
    return static_cast<size_t>(drafts) * arena_bytes_f32(head.num_choices);
  }
  // Arena bytes for so many drafts of one call.
  virtual size_t scratch_bytes(const OutputHead& head, int32_t num_threads, int64_t drafts) const = 0;
  // Read and computed beside the output head, for the roofline.
  virtual int64_t weight_bytes() const = 0;
  virtual int64_t flops_per_row() const = 0;
};

// By the family of the config. The weights are borrowed.
std::unique_ptr<TokenSelection> make_selection(const DrafterConfig& config, const DrafterWeights& weights);

}  // namespace blockdraft
