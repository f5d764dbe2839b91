// DFlash2: the best candidates of every row, and a walk through them that looks at neighbours (spec 4.2).
#pragma once

#include "draft/token_selection.h"

namespace blockdraft {

class CandidateSelection : public TokenSelection {
 public:
  CandidateSelection(const Dflash2Config& config, const SelectorWeights& weights)
      : config_(config), weights_(weights) {}

  void select(Context& context, const SelectionInput& input, const Drafts& drafts) const override;
  size_t scratch_bytes(const OutputHead& head, int32_t num_threads, int64_t drafts) const override;
  size_t law_bytes(const OutputHead&, int64_t drafts) const override {
    return static_cast<size_t>(drafts) * 2 * arena_bytes_f32(config_.selector_top_k);
  }
  int64_t weight_bytes() const override { return weights_.hidden_projection.size_bytes(); }
  int64_t flops_per_row() const override;

 private:
  Dflash2Config config_;
  SelectorWeights weights_;
};

}  // namespace blockdraft
