#include "target/dense_target.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "ops/embedding.h"
#include "ops/rms_norm.h"
#include "ops/rope.h"

namespace blockdraft {
namespace {

constexpr AttentionMask kCausal{.causal = true, .window = 0};

}  // namespace

KvCacheShape DenseTarget::cache_shape(const TargetConfig& config, const TargetLimits& limits) {
  return {.num_layers = static_cast<int32_t>(config.transformer.num_hidden_layers),
          .num_kv_heads = static_cast<int32_t>(config.transformer.num_key_value_heads),
          .head_dim = static_cast<int32_t>(config.transformer.head_dim),
          .max_sequences = limits.max_sequences,
          .max_positions = limits.max_positions,
          .positions_held = limits.max_positions};
}

Result<std::unique_ptr<Target>> DenseTarget::load(const std::filesystem::path& folder, const TargetConfig& config,
                                                  const TargetLimits& limits) {
  BLOCKDRAFT_ASSIGN(Checkpoint checkpoint, Checkpoint::open(folder));
  WeightStore store(std::make_shared<const Checkpoint>(std::move(checkpoint)), "");
  BLOCKDRAFT_ASSIGN(KvCache cache, KvCache::create(cache_shape(config, limits), "target pages"));
  auto target = std::unique_ptr<DenseTarget>(new DenseTarget(config, limits, std::move(store), std::move(cache)));
  BLOCKDRAFT_TRY(target->load_weights());
  return std::unique_ptr<Target>(std::move(target));
}

DenseTarget::DenseTarget(TargetConfig config, const TargetLimits& limits, WeightStore store, KvCache cache)
    : config_(std::move(config)),
      limits_(limits),
      store_(std::move(store)),
      inv_freq_(inverse_frequencies(config_.transformer.rope, config_.transformer.head_dim)),
      cache_(std::move(cache)),
      committed_(static_cast<size_t>(limits.max_sequences), 0),
      batch_(limits.max_rows, limits.max_sequences, cache_.page_table_stride()) {}

Status DenseTarget::load_weights() {
  const TransformerConfig& transformer = config_.transformer;
  BLOCKDRAFT_ASSIGN(embed_tokens_,
                    store_.matrix("model.embed_tokens", transformer.vocab_size, transformer.hidden_size));
  for (int64_t index = 0; index < transformer.num_hidden_layers; ++index) {
    BLOCKDRAFT_ASSIGN(DecoderLayer layer,
                      load_decoder_layer(store_, transformer, fmt::format("model.layers.{}.", index)));
    layers_.push_back(layer);
  }
  BLOCKDRAFT_ASSIGN(norm_, store_.vector("model.norm.weight", transformer.hidden_size));
  if (config_.tie_word_embeddings) {
    lm_head_ = embed_tokens_;
    store_.ignore("lm_head.weight");  // some files carry the tied copy
  } else {
    BLOCKDRAFT_ASSIGN(lm_head_, store_.matrix("lm_head", transformer.vocab_size, transformer.hidden_size));
  }
  if (const auto unused = store_.unused(); !unused.empty()) {
    return make_error(Code::unsupported, "{}: tensor '{}' is not part of a {} ({} such tensors)",
                      store_.checkpoint().file_of(unused.front()), unused.front(), config_.architecture, unused.size());
  }
  return {};
}

void DenseTarget::reserve(int32_t slot, int32_t rows) { cache_.reserve(slot, committed_length(slot) + rows); }

void DenseTarget::commit(int32_t slot, int32_t rows) {
  committed_[static_cast<size_t>(slot)] += rows;
  cache_.truncate(slot, committed_length(slot));
}

void DenseTarget::reset(int32_t slot) {
  committed_[static_cast<size_t>(slot)] = 0;
  cache_.truncate(slot, 0);
}

BatchView DenseTarget::lay_out(std::span<const SequenceRows> sequences) {
  batch_.clear();
  for (const SequenceRows& sequence : sequences) {
    CHECK(sequence.first_position == committed_length(sequence.slot));
    batch_.add(sequence.first_position, static_cast<int32_t>(sequence.token_ids.size()), sequence.token_ids.data(),
               cache_.page_table(sequence.slot));
  }
  return batch_.view();
}

void DenseTarget::copy_taps(const TargetPass& pass, int32_t layer_id, ConstTensorView h) const {
  const int64_t hidden = h.dim(1);
  for (size_t tap = 0; tap < pass.tap_layer_ids.size(); ++tap) {
    if (pass.tap_layer_ids[tap] != layer_id) continue;
    for (int64_t row = 0; row < h.dim(0); ++row) {
      std::memcpy(pass.taps.row(row) + static_cast<int64_t>(tap) * hidden, h.row(row),
                  static_cast<size_t>(hidden) * sizeof(float));
    }
  }
}

void DenseTarget::forward(Context& context, const TargetPass& pass) {
  const ArenaScope scope(*context.arena);
  const TransformerConfig& transformer = config_.transformer;
  const BatchView batch = lay_out(pass.sequences);
  const auto half = static_cast<int64_t>(inv_freq_.size());
  const TensorView h = context.arena->take_f32({batch.num_rows, transformer.hidden_size});
  const TensorView rope = context.arena->take_f32({batch.num_rows, 2 * half});

  embedding(context, h, batch.token_ids, embed_tokens_, embedding_scale());
  rope_table(context, rope, batch.positions, view_f32(inv_freq_.data(), Shape{half}),
             static_cast<float>(transformer.rope.attention_factor));
  copy_taps(pass, -1, h);
  const LayerInput input{transformer, batch, rope};
  for (int32_t index = 0; index < static_cast<int32_t>(layers_.size()); ++index) {
    decoder_layer(context, layers_[static_cast<size_t>(index)], input, kCausal, cache_.layer(index), h);
    copy_taps(pass, index, h);
  }
  for (size_t i = 0; i < pass.hidden_rows.size(); ++i) {
    rms_norm(context, rows_of(pass.hidden, static_cast<int64_t>(i), 1), rows_of(h, pass.hidden_rows[i], 1), norm_,
             static_cast<float>(transformer.rms_norm_eps));
  }
}

size_t DenseTarget::scratch_bytes(int32_t num_threads) const {
  const TransformerConfig& transformer = config_.transformer;
  return arena_bytes_f32(static_cast<int64_t>(limits_.max_rows) * transformer.hidden_size) +
         arena_bytes_f32(static_cast<int64_t>(limits_.max_rows) * transformer.head_dim) +
         decoder_layer_scratch_bytes(transformer, num_threads, limits_.max_rows);
}

int64_t DenseTarget::weight_bytes() const {
  int64_t bytes = lm_head_.size_bytes();
  for (const DecoderLayer& layer : layers_) bytes += decoder_layer_bytes(layer);
  return bytes;
}

int64_t DenseTarget::state_bytes_per_position() const {
  return 2 * config_.transformer.key_value_size() * config_.transformer.num_hidden_layers *
         static_cast<int64_t>(sizeof(float));
}

int64_t DenseTarget::flops_per_row() const {
  int64_t flops = 2 * lm_head_.out_features * lm_head_.in_features;
  for (const DecoderLayer& layer : layers_) flops += decoder_layer_flops_per_row(layer);
  return flops;
}

}  // namespace blockdraft
