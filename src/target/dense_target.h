// Dense targets, Qwen3 and Llama: full causal attention in every layer, tied or untied head. What differs between the
// two is in their configs: norms on the heads of q and k, biases, rope.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "nn/batch.h"
#include "nn/decoder_layer.h"
#include "nn/device_weights.h"
#include "nn/kv_cache.h"
#include "nn/weight_store.h"
#include "target/target.h"

namespace blockdraft {

struct DenseWeights {
  WeightView embed_tokens;  // [vocabulary, hidden]
  std::vector<DecoderLayer> layers;
  ConstTensorView norm;  // [hidden]
  WeightView lm_head;    // [vocabulary, hidden]; of a tied target, embed_tokens or what it was converted to, whatever
                         // else the file holds
};
// Every tensor must be there, and no other.
Result<DenseWeights> load_dense_weights(WeightStore& store, const TargetConfig& config);

class DenseTarget : public Target {
 public:
  static Result<std::unique_ptr<Target>> load(const WeightSource& source, const TargetConfig& config,
                                              const TargetLimits& limits, const WeightLoading& loading);

  const TargetConfig& config() const override { return config_; }
  WeightView embed_tokens() const override { return weights_.embed_tokens; }
  WeightView lm_head() const override { return weights_.lm_head; }
  float embedding_scale() const override { return 1.0f; }

  void reserve(int32_t slot, int32_t rows) override;
  void forward(Context& context, const TargetPass& pass) override;
  void commit(int32_t slot, int32_t rows) override;
  void reset(int32_t slot) override;
  int64_t committed_length(int32_t slot) const override { return committed_[static_cast<size_t>(slot)]; }

  static TargetMemory memory(const TargetConfig& config, const TargetLimits& limits, int32_t num_threads);
  size_t state_bytes() const override { return cache_.size_bytes(); }
  size_t scratch_bytes(int32_t num_threads) const override {
    return memory(config_, limits_, num_threads).scratch_bytes;
  }
  size_t mapped_bytes() const override { return store_.checkpoint().mapped_bytes(); }
  size_t converted_bytes() const override;
  int64_t weight_bytes() const override;
  int64_t state_bytes_per_position() const override;
  int64_t flops_per_row() const override;

 private:
  DenseTarget(TargetConfig config, const TargetLimits& limits, WeightStore store, KvCache cache);
  static KvCacheShape cache_shape(const TargetConfig& config, const TargetLimits& limits, DType dtype);
  Status move_to(CudaDevice& device, ThreadPool* threads);
  BatchView lay_out(Context& context, std::span<const SequenceRows> sequences);
  void norm_rows(Context& context, const TargetPass& pass, ConstTensorView h) const;
  void copy_taps(Context& context, const TargetPass& pass, int32_t layer_id, ConstTensorView h) const;

  TargetConfig config_;
  TargetLimits limits_;
  WeightStore store_;
  DenseWeights weights_;
  std::vector<float> inv_freq_values_;
  ConstTensorView inv_freq_;                       // [head_dim / 2], of these values
  std::shared_ptr<DeviceWeights> device_weights_;  // null: on the CPU

  KvCache cache_;
  std::vector<int64_t> committed_;  // [max_sequences] positions
  Batch batch_;
};

}  // namespace blockdraft
