#include "draft/draft_model.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/has_cuda.h"
#include "draft/block_forward.h"
#include "draft/pairing.h"
#include "nn/card_support.h"
#include "ops/argmax.h"
#include "ops/copy_rows.h"
#include "tensor/host_link.h"
#include "tensor/recorder.h"

namespace blockdraft {

Result<std::unique_ptr<DraftModel>> DraftModel::load(const WeightSource& source, const DrafterConfig& config,
                                                     const TargetWeights& target, const DrafterLimits& limits,
                                                     const WeightLoading& loading) {
  BLOCKDRAFT_TRY(require_pairing(config, {.hidden_size = target.embed_tokens.in_features,
                                          .num_hidden_layers = target.num_hidden_layers,
                                          .vocab_size = target.embed_tokens.out_features,
                                          .num_choices = target.num_choices}));
  BLOCKDRAFT_TRY(card_supports(loading.cuda, config.transformer));
  if constexpr (kHasCuda) {
    const bool has_candidates = loading.cuda != nullptr && config.family == DrafterFamily::dflash2;
    if (has_candidates) BLOCKDRAFT_TRY(cu::supports_top_k(config.dflash2.selector_top_k));
  }
  BLOCKDRAFT_ASSIGN(Checkpoint checkpoint, Checkpoint::open_source(source));
  BLOCKDRAFT_ASSIGN(std::string prefix, find_prefix(checkpoint));
  WeightStore store(std::make_shared<const Checkpoint>(std::move(checkpoint)), std::move(prefix));
  store.convert_at_load(loading);
  const KvCacheShape shape =
      ContextKv::shape(config, limits.max_sequences, limits.max_positions, KvCache::dtype_on(loading.cuda));
  BLOCKDRAFT_ASSIGN(KvCache cache, KvCache::create(shape, "context pages", loading.cuda));
  std::unique_ptr<DraftModel> model(new DraftModel(config, limits, shape, std::move(store), std::move(cache)));
  BLOCKDRAFT_TRY(model->load_weights(target, loading));
  return model;
}

DraftModel::DraftModel(DrafterConfig config, const DrafterLimits& limits, const KvCacheShape& shape, WeightStore store,
                       KvCache cache)
    : config_(std::move(config)),
      limits_(limits),
      shape_(shape),
      store_(std::move(store)),
      inv_freq_values_(inverse_frequencies(config_.transformer.rope, config_.transformer.head_dim)),
      inv_freq_(view_f32(std::as_const(inv_freq_values_).data(), Shape{std::ssize(inv_freq_values_)})),
      context_kv_(config_, shape, std::move(cache)),
      batch_(static_cast<int32_t>(max_block_rows()), limits.max_sequences, context_kv_.cache().page_table_stride()),
      block_ids_(static_cast<size_t>(config_.block_size), config_.mask_token_id) {}

Status DraftModel::load_weights(const TargetWeights& target, const WeightLoading& loading) {
  BLOCKDRAFT_ASSIGN(weights_, load_drafter_weights(store_, config_));
  device_map_ = weights_.draft_to_target.empty() ? nullptr : weights_.draft_to_target.data();
  if (loading.cuda != nullptr) BLOCKDRAFT_TRY(move_to(*loading.cuda, loading.threads));
  selection_ = make_selection(config_, weights_);
  embed_tokens_ = weights_.embed_tokens.value_or(target.embed_tokens);
  embedding_scale_ = config_.input_embedding_scale.value_or(target.embedding_scale);
  head_.weight = weights_.lm_head.value_or(target.lm_head);
  head_.multiplier = config_.output_multiplier;
  head_.softcap = config_.final_logit_softcapping;
  const std::vector<int32_t>& ids = weights_.draft_to_target;
  head_.num_choices = ids.empty() ? std::min(target.num_choices, head_.weight.out_features)
                                  : std::ranges::lower_bound(ids, target.num_choices) - ids.begin();
  if (config_.family == DrafterFamily::dflash2 && config_.dflash2.selector_top_k > head_.num_choices) {
    return make_error(Code::mismatch, "{}: selector_top_k is {}, the vocabulary has {} ids", config_.origin,
                      config_.dflash2.selector_top_k, head_.num_choices);
  }
  return {};
}

Status DraftModel::move_to(CudaDevice& device, ThreadPool* threads) {
  if constexpr (kHasCuda) {
    BLOCKDRAFT_ASSIGN(DeviceWeights moved, DeviceWeights::create(device, threads, "drafter weights"));
    BLOCKDRAFT_TRY(visit_drafter_weights(weights_, [&](auto& view) { return moved.move(view); }));
    BLOCKDRAFT_TRY(moved.move(inv_freq_));
    if (device_map_ != nullptr) {
      BLOCKDRAFT_ASSIGN(device_map_, moved.copy(std::span<const int32_t>(weights_.draft_to_target)));
    }
    BLOCKDRAFT_TRY(moved.finish());
    device_weights_ = std::make_shared<DeviceWeights>(std::move(moved));
    store_.forget_values();
  }
  return {};
}

size_t DraftModel::converted_bytes() const {
  if constexpr (kHasCuda) {
    if (device_weights_ != nullptr) return device_weights_->size_bytes();
  }
  return store_.converted_bytes();
}

void DraftModel::extend_context(Context& context, ConstTensorView taps, std::span<const TapRows> rows) {
  context_kv_.extend(context, weights_, inv_freq_, taps, rows);
}

int64_t DraftModel::block_rows(std::span<const DraftRequest> requests) const {
  int64_t rows = 0;
  for (const DraftRequest& request : requests) rows += config_.rows_for_width(request.width);
  return rows;
}

void DraftModel::block_hidden(Context& context, std::span<const DraftRequest> requests, TensorView hidden) {
  batch_.clear();
  for (const DraftRequest& request : requests) {
    CHECK(request.width >= 1 && request.width <= trained_width());
    CHECK(request.position == context_kv_.length(request.slot));
    const int32_t rows = config_.rows_for_width(request.width);
    block_ids_[0] = request.anchor_id;
    context_kv_.cache().reserve(request.slot, request.position + rows);
    batch_.add(request.position, rows, block_ids_.data(), context_kv_.cache().page_table(request.slot));
  }
  block_forward(context, config_, weights_, context_kv_.cache(),
                {batch_.view(context), embed_tokens_, embedding_scale_, inv_freq_}, hidden);
}

Status DraftModel::propose(Context& context, std::span<const DraftRequest> requests, const Drafts& drafts) {
  const ArenaScope scope(*context.arena);
  if (context.recorder != nullptr) {
    for (const DraftRequest& request : requests) context_kv_.record_pages(context, request.slot);
  }
  const TensorView block = context.arena->take_f32({block_rows(requests), config_.transformer.hidden_size});
  block_hidden(context, requests, block);
  if (drafts.device_ids != nullptr) {
    select(context, requests, block, drafts);
    return {};
  }
  Drafts placed = drafts;
  placed.device_ids = for_host(context, drafts.ids);
  select(context, requests, block, placed);
  BLOCKDRAFT_TRY(synchronize(context));
  record(context, "drafts", drafts.ids);
  return require_numbers(drafts.ids);
}

Status DraftModel::require_numbers(std::span<const int32_t> ids) const {
  if (std::ranges::find(ids, kNotANumber) == ids.end()) return {};
  return make_error(Code::numeric, "{}: the drafter's logits are not numbers", config_.origin);
}

// In place, the anchor's own row gives no draft (spec 1.8).
void DraftModel::select(Context& context, std::span<const DraftRequest> requests, ConstTensorView block,
                        const Drafts& drafts) {
  const ArenaScope scope(*context.arena);
  const ArenaScope host_scope(host_arena(context));
  const TensorView hidden = context.arena->take_f32({std::ssize(drafts.ids), config_.transformer.hidden_size});
  const std::span block_rows(host_arena(context).take_i32(std::ssize(drafts.ids)), drafts.ids.size());
  int32_t block_row = config_.layout == BlockLayout::in_place ? 1 : 0;
  auto next = block_rows.begin();
  for (const DraftRequest& request : requests) {
    for (int32_t i = 0; i < request.width; ++i) *next++ = block_row + i;
    block_row += config_.rows_for_width(request.width);
  }
  copy_rows(context, hidden, block, on_device(context, block_rows));
  selection_->select(context,
                     {.hidden = hidden,
                      .requests = requests,
                      .head = head_,
                      .draft_to_target = weights_.draft_to_target,
                      .device_map = device_map_,
                      .confidence_threshold = confidence_threshold_},
                     drafts);
}

Status DraftModel::set_confidence_threshold(float threshold) {
  if (!config_.dspark.enable_confidence_head) {
    return make_error(Code::invalid_argument,
                      "option confidence_threshold is {}, expected 0: {} is of a drafter without confidence head",
                      threshold, config_.origin);
  }
  confidence_threshold_ = threshold;
  return {};
}

DrafterMemory drafter_memory(const DrafterConfig& config, const DrafterWeights& weights, const OutputHead& head,
                             const DrafterLimits& limits, int32_t num_threads) {
  const int64_t rows = static_cast<int64_t>(config.block_size) * limits.max_sequences;
  const size_t propose_part = 2 * arena_bytes_f32(rows * config.transformer.hidden_size) + arena_bytes_f32(rows) +
                              std::max(block_forward_scratch_bytes(config, weights, num_threads, rows),
                                       make_selection(config, weights)->scratch_bytes(head, num_threads, rows));
  const KvCacheShape shape = ContextKv::shape(config, limits.max_sequences, limits.max_positions);
  return {.state_bytes = KvCache::size_bytes(shape),
          .scratch_bytes = std::max(propose_part, ContextKv::scratch_bytes(config))};
}

int64_t DraftModel::propose_weight_bytes() const {
  int64_t bytes = head_.weight.size_bytes() + selection_->weight_bytes();
  for (const BlockLayer& layer : weights_.layers) bytes += block_layer_bytes(layer);
  return bytes;
}

int64_t DraftModel::choice_flops_per_row() const {
  return 2 * head_.weight.out_features * head_.weight.in_features + selection_->flops_per_row();
}

int64_t DraftModel::propose_flops_per_row() const {
  int64_t flops = choice_flops_per_row();
  for (const BlockLayer& layer : weights_.layers) flops += block_layer_flops_per_row(layer);
  return flops;
}

int64_t DraftModel::context_weight_bytes() const {
  int64_t bytes = weights_.fc.size_bytes();
  for (const WeightView& weight : weights_.context_kv_proj) bytes += weight.size_bytes();
  return bytes;
}

int64_t DraftModel::context_flops_per_row() const {
  int64_t flops = 2 * weights_.fc.out_features * weights_.fc.in_features;
  for (const WeightView& weight : weights_.context_kv_proj) flops += 2 * weight.out_features * weight.in_features;
  return flops;
}

int64_t DraftModel::kv_bytes_per_position() const {
  return 2 * config_.transformer.key_value_size() * config_.transformer.num_hidden_layers *
         static_cast<int64_t>(size_of(shape_.dtype));
}

}  // namespace blockdraft
