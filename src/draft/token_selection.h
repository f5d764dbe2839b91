// From the block's hidden rows to draft tokens. Each drafter family has its own way; this is where they plug in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "draft/draft_source.h"
#include "nn/output_head.h"
#include "tensor/context.h"
#include "tensor/tensor_view.h"

namespace blockdraft {

struct SelectionInput {
  ConstTensorView hidden;                  // [sum of widths, hidden], final-normed, in the order of the drafts
  std::span<const DraftRequest> requests;  // whose widths and anchors these are
  const OutputHead& head;
  std::span<const int32_t> draft_to_target;  // empty: draft ids are target ids
};

class TokenSelection {
 public:
  virtual ~TokenSelection() = default;
  // drafts: [sum of widths] target ids, kNotANumber where a logit is NaN.
  virtual void select(Context& context, const SelectionInput& input, std::span<int32_t> drafts) const = 0;
  virtual size_t scratch_bytes(const OutputHead& head, int64_t rows) const = 0;
};

// DFlash: every row by itself, the largest logit (spec 1.9).
class ArgmaxSelection : public TokenSelection {
 public:
  void select(Context& context, const SelectionInput& input, std::span<int32_t> drafts) const override;
  size_t scratch_bytes(const OutputHead& head, int64_t rows) const override;
};

}  // namespace blockdraft
