// A drafter of the DFlash family: context K/V, block pass and token selection together (spec 1.2).
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "blockdraft/result.h"
#include "draft/context_kv.h"
#include "draft/draft_source.h"
#include "draft/drafter_config.h"
#include "draft/drafter_weights.h"
#include "draft/token_selection.h"
#include "nn/batch.h"
#include "nn/device_weights.h"
#include "nn/output_head.h"
#include "nn/weight_store.h"

namespace blockdraft {

// What a drafter borrows of its target. The bytes behind the views must outlive the drafter.
struct TargetWeights {
  WeightView embed_tokens;       // [vocabulary, hidden]
  WeightView lm_head;            // [vocabulary, hidden]
  float embedding_scale = 1.0f;  // what the target multiplies embedding rows by
  int64_t num_hidden_layers = 0;
  int64_t num_choices = 0;  // real ids; rows beyond them are never proposed
};

struct DrafterLimits {
  int32_t max_sequences = 1;
  int64_t max_positions = 0;  // highest position + 1 that a block row may have
};

// Memory beside the weights.
struct DrafterMemory {
  size_t state_bytes = 0;    // context K/V of all sequences
  size_t scratch_bytes = 0;  // arena bytes that a call takes at most
};
// From shapes alone: the weights may be without data. `head`: the file's own, or the target's.
DrafterMemory drafter_memory(const DrafterConfig& config, const DrafterWeights& weights, const OutputHead& head,
                             const DrafterLimits& limits, int32_t num_threads);

// A recorder in the context gets, beside what TokenSelection says: from extend_context() "taps" and "context_features";
// from propose() what ContextKv::record_pages() says, of the block rows "block_input", "layer_output.LAYER" and
// "hidden", and "drafts". Sequences follow one another in the order of the call.
class DraftModel : public DraftSource {
 public:
  // Reads the folder's weights, and checks that they fit the target. `loading`: of its linear weights
  // (WeightStore::convert_at_load).
  static Result<std::unique_ptr<DraftModel>> load(const WeightSource& source, const DrafterConfig& config,
                                                  const TargetWeights& target, const DrafterLimits& limits,
                                                  const WeightLoading& loading = {});

  int32_t trained_width() const override { return config_.trained_width(); }
  int32_t mask_id() const override { return config_.mask_token_id; }
  std::span<const int32_t> target_layer_ids() const override { return config_.target_layer_ids; }
  void extend_context(Context& context, ConstTensorView taps, std::span<const TapRows> rows) override;
  Status propose(Context& context, std::span<const DraftRequest> requests, const Drafts& drafts) override;
  bool proposes_on_device() const override { return confidence_threshold_ == 0.0f; }
  Status require_numbers(std::span<const int32_t> ids) const override;
  void reset(int32_t slot) override { context_kv_.reset(slot); }
  // Context positions 0 .. context_length() - 1 are there; truncate_context() takes lengths from the earliest one on.
  int32_t context_length(int32_t slot) const { return context_kv_.length(slot); }
  int32_t earliest_context_length(int32_t slot) const { return context_kv_.earliest_length(slot); }
  void truncate_context(int32_t slot, int32_t length) { context_kv_.truncate(slot, length); }
  bool has_confidence() const {
    return config_.family == DrafterFamily::dspark && config_.dspark.enable_confidence_head;
  }
  size_t law_bytes(int64_t drafts) const override { return selection_->law_bytes(head_, drafts); }
  size_t state_bytes() const override { return KvCache::size_bytes(shape_); }
  size_t scratch_bytes(int32_t num_threads) const override {
    return drafter_memory(config_, weights_, head_, limits_, num_threads).scratch_bytes;
  }

  // Drafts from the first with less confidence on are not verified; 0: all are. Without a confidence head:
  // invalid_argument.
  Status set_confidence_threshold(float threshold);

  // The first part of propose(), for tests: final-normed hidden rows of whole blocks, rows_for_width of each request.
  void block_hidden(Context& context, std::span<const DraftRequest> requests, TensorView hidden);
  int64_t block_rows(std::span<const DraftRequest> requests) const;
  const OutputHead& head() const { return head_; }  // what logits are made with

  const DrafterConfig& config() const { return config_; }
  size_t mapped_bytes() const { return store_.checkpoint().mapped_bytes(); }
  size_t converted_bytes() const;  // of weights in memory of its own, or on a card
  // For the roofline: bytes that each pass reads, arithmetic of a row.
  int64_t propose_weight_bytes() const;
  int64_t propose_flops_per_row() const;
  int64_t choice_flops_per_row() const;  // of that, head and selection
  int64_t context_weight_bytes() const;
  int64_t context_flops_per_row() const;
  int64_t kv_bytes_per_position() const;

 private:
  DraftModel(DrafterConfig config, const DrafterLimits& limits, const KvCacheShape& shape, WeightStore store,
             KvCache cache);
  void select(Context& context, std::span<const DraftRequest> requests, ConstTensorView block, const Drafts& drafts);
  Status load_weights(const TargetWeights& target, const WeightLoading& loading);
  Status move_to(CudaDevice& device, ThreadPool* threads);
  int64_t max_block_rows() const { return static_cast<int64_t>(config_.block_size) * limits_.max_sequences; }

  DrafterConfig config_;
  DrafterLimits limits_;
  KvCacheShape shape_;
  WeightStore store_;
  DrafterWeights weights_;
  WeightView embed_tokens_;
  float embedding_scale_ = 1.0f;
  OutputHead head_;
  std::vector<float> inv_freq_values_;
  ConstTensorView inv_freq_;                       // [head_dim / 2], of these values
  const int32_t* device_map_ = nullptr;            // draft_to_target where the ops are
  std::shared_ptr<DeviceWeights> device_weights_;  // null: on the CPU
  std::unique_ptr<TokenSelection> selection_;
  float confidence_threshold_ = 0.0f;
  ContextKv context_kv_;
  Batch batch_;
  std::vector<int32_t> block_ids_;  // [block_size]: an anchor, then mask tokens
};

}  // namespace blockdraft
