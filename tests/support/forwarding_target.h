// A target that hands every call on to another. Tests override what they want to know or to spoil.
#pragma once

#include <memory>
#include <utility>

#include "target/target.h"

namespace blockdraft::test {

class ForwardingTarget : public Target {
 public:
  explicit ForwardingTarget(std::unique_ptr<Target> inner) : inner_(std::move(inner)) {}

  const TargetConfig& config() const override { return inner_->config(); }
  WeightView embed_tokens() const override { return inner_->embed_tokens(); }
  WeightView lm_head() const override { return inner_->lm_head(); }
  float embedding_scale() const override { return inner_->embedding_scale(); }
  void reserve(int32_t slot, int32_t rows) override { inner_->reserve(slot, rows); }
  void forward(Context& context, const TargetPass& pass) override { inner_->forward(context, pass); }
  void commit(int32_t slot, int32_t rows) override { inner_->commit(slot, rows); }
  void reset(int32_t slot) override { inner_->reset(slot); }
  int64_t committed_length(int32_t slot) const override { return inner_->committed_length(slot); }
  size_t state_bytes() const override { return inner_->state_bytes(); }
  size_t scratch_bytes(int32_t num_threads) const override { return inner_->scratch_bytes(num_threads); }
  size_t mapped_bytes() const override { return inner_->mapped_bytes(); }
  size_t converted_bytes() const override { return inner_->converted_bytes(); }
  int64_t weight_bytes() const override { return inner_->weight_bytes(); }
  int64_t state_bytes_per_position() const override { return inner_->state_bytes_per_position(); }
  int64_t flops_per_row() const override { return inner_->flops_per_row(); }

 private:
  std::unique_ptr<Target> inner_;
};

}  // namespace blockdraft::test
