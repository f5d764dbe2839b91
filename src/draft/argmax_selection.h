// DFlash: every row by itself, its largest logit (spec 1.9).
#pragma once

#include "draft/token_selection.h"

namespace blockdraft {

class ArgmaxSelection : public TokenSelection {
 public:
  void select(Context& context, const SelectionInput& input, const Drafts& drafts) const override;
  size_t scratch_bytes(const OutputHead& head, int32_t num_threads, int64_t drafts) const override;
  int64_t weight_bytes() const override { return 0; }
  int64_t flops_per_row() const override { return 0; }
};

}  // namespace blockdraft
