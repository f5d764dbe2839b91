#include "target/dense_target.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/has_cuda.h"
#include "nn/card_support.h"
#include "ops/copy_rows.h"
#include "ops/embedding.h"
#include "ops/linear.h"
#include "ops/rms_norm.h"
#include "ops/rope.h"

namespace blockdraft {
namespace {

constexpr AttentionMask kCausal{.causal = true, .window = 0};

int64_t rows_of_sequences(const TargetPass& pass) {
  int64_t rows = 0;
  for (const SequenceRows& sequence : pass.sequences) rows += std::ssize(sequence.token_ids);
  return rows;
}

Status refuse_unused(const WeightStore& store, const TargetConfig& config) {
  const std::vector<std::string> unused = store.unused();
  if (unused.empty()) return {};
  return make_error(Code::unsupported, "{}: tensor '{}' is not part of a {} ({} such tensors)",
                    store.checkpoint().file_of(unused.front()), unused.front(), config.architecture, unused.size());
}

}  // namespace

Result<DenseWeights> load_dense_weights(WeightStore& store, const TargetConfig& config) {
  const TransformerConfig& transformer = config.transformer;
  DenseWeights weights;
  BLOCKDRAFT_ASSIGN(weights.embed_tokens,
                    store.matrix("model.embed_tokens", transformer.vocab_size, transformer.hidden_size));
  for (int64_t index = 0; index < transformer.num_hidden_layers; ++index) {
    BLOCKDRAFT_ASSIGN(DecoderLayer layer,
                      load_decoder_layer(store, transformer, fmt::format("model.layers.{}.", index)));
    weights.layers.push_back(layer);
  }
  BLOCKDRAFT_ASSIGN(weights.norm, store.vector("model.norm.weight", transformer.hidden_size));
  if (config.tie_word_embeddings) {
    BLOCKDRAFT_ASSIGN(weights.lm_head, store.as_loaded("model.embed_tokens", weights.embed_tokens));
    store.ignore_matrix("lm_head");  // some files carry a copy of the tied table, plain or quantized
  } else {
    BLOCKDRAFT_ASSIGN(const WeightView head, store.matrix("lm_head", transformer.vocab_size, transformer.hidden_size));
    BLOCKDRAFT_ASSIGN(weights.lm_head, store.as_loaded("lm_head", head));
  }
  BLOCKDRAFT_TRY(refuse_unused(store, config));
  return weights;
}

KvCacheShape DenseTarget::cache_shape(const TargetConfig& config, const TargetLimits& limits, DType dtype) {
  return {.num_layers = static_cast<int32_t>(config.transformer.num_hidden_layers),
          .num_kv_heads = static_cast<int32_t>(config.transformer.num_key_value_heads),
          .head_dim = static_cast<int32_t>(config.transformer.head_dim),
          .max_sequences = limits.max_sequences,
          .max_positions = limits.max_positions,
          .positions_held = limits.max_positions,
          .dtype = dtype};
}

Result<std::unique_ptr<Target>> DenseTarget::load(const WeightSource& source, const TargetConfig& config,
                                                  const TargetLimits& limits, const WeightLoading& loading) {
  BLOCKDRAFT_TRY(card_supports(loading.cuda, config.transformer));
  BLOCKDRAFT_ASSIGN(Checkpoint checkpoint, Checkpoint::open_source(source));
  WeightStore store(std::make_shared<const Checkpoint>(std::move(checkpoint)), "");
  store.convert_at_load(loading);
  BLOCKDRAFT_ASSIGN(KvCache cache, KvCache::create(cache_shape(config, limits, KvCache::dtype_on(loading.cuda)),
                                                   "target pages", loading.cuda));
  auto target = std::unique_ptr<DenseTarget>(new DenseTarget(config, limits, std::move(store), std::move(cache)));
  BLOCKDRAFT_ASSIGN(target->weights_, load_dense_weights(target->store_, config));
  if (loading.cuda != nullptr) BLOCKDRAFT_TRY(target->move_to(*loading.cuda, loading.threads));
  return std::unique_ptr<Target>(std::move(target));
}

DenseTarget::DenseTarget(TargetConfig config, const TargetLimits& limits, WeightStore store, KvCache cache)
    : config_(std::move(config)),
      limits_(limits),
      store_(std::move(store)),
      inv_freq_values_(inverse_frequencies(config_.transformer.rope, config_.transformer.head_dim)),
      inv_freq_(view_f32(std::as_const(inv_freq_values_).data(), Shape{std::ssize(inv_freq_values_)})),
      cache_(std::move(cache)),
      committed_(static_cast<size_t>(limits.max_sequences), 0),
      batch_(limits.max_rows, limits.max_sequences, cache_.page_table_stride()) {}

Status DenseTarget::move_to(CudaDevice& device, ThreadPool* threads) {
  if constexpr (kHasCuda) {
    BLOCKDRAFT_ASSIGN(DeviceWeights moved, DeviceWeights::create(device, threads, "target weights"));
    const auto move = [&](auto& view) { return moved.move(view); };
    BLOCKDRAFT_TRY(move(weights_.embed_tokens));
    for (DecoderLayer& layer : weights_.layers) BLOCKDRAFT_TRY(visit_decoder_layer(layer, move));
    BLOCKDRAFT_TRY(move(weights_.norm));
    BLOCKDRAFT_TRY(move(weights_.lm_head));
    BLOCKDRAFT_TRY(move(inv_freq_));
    BLOCKDRAFT_TRY(moved.finish());
    device_weights_ = std::make_shared<DeviceWeights>(std::move(moved));
    store_.forget_values();
  }
  return {};
}

size_t DenseTarget::converted_bytes() const {
  if constexpr (kHasCuda) {
    if (device_weights_ != nullptr) return device_weights_->size_bytes();
  }
  return store_.converted_bytes();
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

BatchView DenseTarget::lay_out(Context& context, std::span<const SequenceRows> sequences) {
  batch_.clear();
  for (const SequenceRows& sequence : sequences) {
    CHECK(sequence.first_position == committed_length(sequence.slot));
    batch_.add(sequence.first_position, static_cast<int32_t>(sequence.token_ids.size()), sequence.token_ids.data(),
               cache_.page_table(sequence.slot));
  }
  // Products of a prompt differ with the number of rows, so all passes have the same.
  if (context.prompt_products != nullptr) batch_.pad(kPromptRows);
  return batch_.view(context);
}

void DenseTarget::copy_taps(Context& context, const TargetPass& pass, int32_t layer_id, ConstTensorView h) const {
  const int64_t hidden = h.dim(1);
  for (size_t tap = 0; tap < pass.tap_layer_ids.size(); ++tap) {
    if (pass.tap_layer_ids[tap] != layer_id) continue;
    const TensorView rows = rows_of(pass.taps, 0, h.dim(0));
    copy_rows(context, columns_of(rows, static_cast<int64_t>(tap) * hidden, hidden), h, nullptr);
  }
}

void DenseTarget::forward(Context& context, const TargetPass& pass) {
  const ArenaScope scope(*context.arena);
  CHECK(pass.token_ids == nullptr || context.prompt_products == nullptr);
  const TransformerConfig& transformer = config_.transformer;
  const BatchView batch = lay_out(context, pass.sequences);
  if (is_repeated(context)) return;
  const TensorView h = context.arena->take_f32({batch.num_rows, transformer.hidden_size});
  const TensorView tapped = rows_of(h, 0, rows_of_sequences(pass));
  const TensorView rope = context.arena->take_f32({batch.num_rows, 2 * inv_freq_.dim(0)});
  const int32_t* ids = pass.token_ids == nullptr ? batch.token_ids : pass.token_ids;

  embedding(context, h, ids, weights_.embed_tokens, embedding_scale());
  rope_table(context, rope, batch.positions, inv_freq_, static_cast<float>(transformer.rope.attention_factor));
  copy_taps(context, pass, -1, tapped);
  const LayerInput input{transformer, batch, rope};
  for (int32_t index = 0; index < static_cast<int32_t>(weights_.layers.size()); ++index) {
    decoder_layer(context, weights_.layers[static_cast<size_t>(index)], input, kCausal, cache_.layer(index), h);
    copy_taps(context, pass, index, tapped);
  }
  norm_rows(context, pass, h);
}

// Neighbouring rows together.
void DenseTarget::norm_rows(Context& context, const TargetPass& pass, ConstTensorView h) const {
  const std::span<const int32_t> rows = pass.hidden_rows;
  for (size_t first = 0, end = 0; first < rows.size(); first = end) {
    for (end = first + 1; end < rows.size() && rows[end] == rows[end - 1] + 1;) ++end;
    const auto count = static_cast<int64_t>(end - first);
    rms_norm(context, rows_of(pass.hidden, static_cast<int64_t>(first), count), rows_of(h, rows[first], count),
             weights_.norm, static_cast<float>(config_.transformer.rms_norm_eps));
  }
}

TargetMemory DenseTarget::memory(const TargetConfig& config, const TargetLimits& limits, int32_t num_threads) {
  const TransformerConfig& transformer = config.transformer;
  return {.state_bytes = KvCache::size_bytes(cache_shape(config, limits, DType::f32)),
          .scratch_bytes = arena_bytes_f32(static_cast<int64_t>(limits.max_rows) * transformer.hidden_size) +
                           arena_bytes_f32(static_cast<int64_t>(limits.max_rows) * transformer.head_dim) +
                           decoder_layer_scratch_bytes(transformer, num_threads, limits.max_rows)};
}

int64_t DenseTarget::weight_bytes() const {
  int64_t bytes = weights_.lm_head.size_bytes();
  for (const DecoderLayer& layer : weights_.layers) bytes += decoder_layer_bytes(layer);
  return bytes;
}

int64_t DenseTarget::state_bytes_per_position() const {
  return 2 * config_.transformer.key_value_size() * config_.transformer.num_hidden_layers *
         static_cast<int64_t>(size_of(cache_.dtype()));
}

int64_t DenseTarget::flops_per_row() const {
  int64_t flops = 2 * weights_.lm_head.out_features * weights_.lm_head.in_features;
  for (const DecoderLayer& layer : weights_.layers) flops += decoder_layer_flops_per_row(layer);
  return flops;
}

}  // namespace blockdraft
