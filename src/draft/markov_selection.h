// DSpark: logits corrected by the token before, one position after the other, and a confidence in each (spec 5).
#pragma once

#include <string_view>

#include "draft/token_selection.h"

namespace blockdraft {

class MarkovSelection : public TokenSelection {
 public:
  MarkovSelection(const DsparkConfig& config, const MarkovWeights& weights, int64_t hidden_size, int64_t block_size)
      : config_(config), weights_(weights), hidden_size_(hidden_size), block_size_(block_size) {}

  void select(Context& context, const SelectionInput& input, const Drafts& drafts) const override;
  size_t scratch_bytes(const OutputHead& head, int32_t num_threads, int64_t drafts) const override;
  int64_t weight_bytes() const override;
  int64_t flops_per_row() const override;

 private:
  struct Group;
  Group take_group(Context& context, const SelectionInput& input, size_t first_request, size_t num_requests,
                   int64_t first_draft) const;
  static void order_steps(Arena& arena, const SelectionInput& input, size_t first_request, size_t num_requests,
                          int64_t first_draft, Group& group);
  static const RowSampling* samplings_of(Context& context, const SelectionInput& input, const Group& group);
  void run(Context& context, const SelectionInput& input, Group& group) const;
  void embed_predecessors(Context& context, Group& group, int64_t active) const;
  void judge(Context& context, Group& group, ConstTensorView hidden, TensorView confidence) const;
  void correct(Context& context, Group& group, ConstTensorView hidden, TensorView logits) const;
  void draw(Context& context, const SelectionInput& input, Group& group, int64_t row, int64_t active) const;
  void record_step(const Context& context, std::string_view name, const Group& group, int64_t step,
                   ConstTensorView rows) const;
  void hand_out(Context& context, const SelectionInput& input, const Group& group, const Drafts& drafts) const;
  static void hand_out_confidences(const Context& context, const SelectionInput& input, const Group& group,
                                   const Drafts& drafts);
  static void hand_out_laws(const Context& context, const SelectionInput& input, const Group& group, int64_t sequence,
                            const Drafts& drafts);

  DsparkConfig config_;
  MarkovWeights weights_;
  int64_t hidden_size_;
  int64_t block_size_;
};

}  // namespace blockdraft
