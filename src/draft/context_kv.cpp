#include "draft/context_kv.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "base/check.h"
#include "ops/copy_rows.h"
#include "ops/linear.h"
#include "ops/qkv_finish.h"
#include "ops/rms_norm.h"
#include "ops/rope.h"
#include "tensor/codec.h"
#include "tensor/host_link.h"
#include "tensor/read_back.h"
#include "tensor/recorder.h"

namespace blockdraft {
namespace {

// All rows of one flush share the pass, so a batch never holds more sequences than rows.
int32_t max_batch_sequences(int32_t max_sequences) { return std::min(max_sequences, kContextRows); }

// What the pages hold of a position, head after head. On a card vectors are BF16.
std::vector<float> vectors_at(const Context& context, const PagedKvView& kv, const void* pages, const int32_t* table,
                              int32_t position) {
  std::vector<float> vectors;
  std::vector<std::byte> vector(static_cast<size_t>(kv.head_dim) * size_of(kv.dtype));
  for (int32_t head = 0; head < kv.num_kv_heads; ++head) {
    const int64_t offset = kv.offset(table[position / kPageSize], head, position % kPageSize);
    const std::byte* from = static_cast<const std::byte*>(pages) + offset * static_cast<int64_t>(size_of(kv.dtype));
    if (context.cuda == nullptr) {
      std::copy_n(from, vector.size(), vector.begin());
    } else {
      read_back(*context.cuda, vector.data(), from, vector.size());
    }
    for (int32_t i = 0; i < kv.head_dim; ++i) {
      const std::byte* element = vector.data() + static_cast<size_t>(i) * size_of(kv.dtype);
      vectors.push_back(kv.dtype == DType::bf16 ? float_from_bf16(load_unaligned<uint16_t>(element))
                                                : load_unaligned<float>(element));
    }
  }
  return vectors;
}

}  // namespace

KvCacheShape ContextKv::shape(const DrafterConfig& config, int32_t max_sequences, int64_t max_positions, DType dtype) {
  const int32_t window = config.largest_window();
  const int64_t windowed = static_cast<int64_t>(window) + kContextRows + config.block_size;
  return {.num_layers = static_cast<int32_t>(config.transformer.num_hidden_layers),
          .num_kv_heads = static_cast<int32_t>(config.transformer.num_key_value_heads),
          .head_dim = static_cast<int32_t>(config.transformer.head_dim),
          .max_sequences = max_sequences,
          .max_positions = max_positions,
          .positions_held = window == 0 ? max_positions : std::min(max_positions, windowed),
          .dtype = dtype};
}

ContextKv::ContextKv(const DrafterConfig& config, const KvCacheShape& shape, KvCache cache)
    : config_(config),
      cache_(std::move(cache)),
      largest_window_(config.largest_window()),
      length_(static_cast<size_t>(shape.max_sequences), 0),
      batch_(kContextRows, max_batch_sequences(shape.max_sequences), cache_.page_table_stride()) {
  rows_.reserve(kContextRows);
}

void ContextKv::reset(int32_t slot) {
  length_[static_cast<size_t>(slot)] = 0;
  cache_.truncate(slot, 0);
}

int32_t ContextKv::earliest_length(int32_t slot) const {
  const auto first_held = static_cast<int32_t>(cache_.first_position_held(slot));
  if (first_held == 0) return 0;
  // A row at position p sees p - window + 1 and what follows.
  return std::min(length(slot), first_held + largest_window_ - 1);
}

void ContextKv::truncate(int32_t slot, int32_t length) {
  CHECK(length >= earliest_length(slot) && length <= this->length(slot));
  length_[static_cast<size_t>(slot)] = length;
  cache_.truncate(slot, length);
}

void ContextKv::append_rows(int32_t slot, int32_t first_row, int32_t num_rows) {
  int32_t& length = length_[static_cast<size_t>(slot)];
  // The rows to come are queried from `length` on at the earliest, so keys below its window are done with.
  if (largest_window_ > 0) cache_.free_below(slot, std::max(0, length - largest_window_ + 1));
  cache_.reserve(slot, length + num_rows);
  batch_.add(length, num_rows, nullptr, cache_.page_table(slot));
  for (int32_t row = 0; row < num_rows; ++row) rows_.push_back(first_row + row);
  length += num_rows;
}

void ContextKv::extend(Context& context, const DrafterWeights& weights, ConstTensorView inv_freq, ConstTensorView taps,
                       std::span<const TapRows> rows) {
  batch_.clear();
  rows_.clear();
  const auto flush_rows = [&] {
    if (!rows_.empty()) flush(context, weights, inv_freq, taps);
    batch_.clear();
    rows_.clear();
  };
  for (const TapRows& part : rows) {
    CHECK(part.first_position == length(part.slot));
    for (int32_t done = 0; done < part.num_rows;) {
      if (std::ssize(rows_) == kContextRows) flush_rows();
      const int32_t count = std::min(part.num_rows - done, kContextRows - static_cast<int32_t>(rows_.size()));
      append_rows(part.slot, part.first_row + done, count);
      done += count;
    }
  }
  flush_rows();
}

void ContextKv::flush(Context& context, const DrafterWeights& weights, ConstTensorView inv_freq, ConstTensorView taps) {
  const ArenaScope scope(*context.arena);
  const int64_t recorded = std::ssize(rows_);
  if (context.cuda != nullptr) {
    const auto granule = static_cast<size_t>(context.prompt_products == nullptr ? kPaddedRows : kPromptRows);
    rows_.resize((rows_.size() + granule - 1) / granule * granule, 0);
    batch_.pad(static_cast<int32_t>(rows_.size()));
  }
  const TensorView gathered = context.arena->take_f32({std::ssize(rows_), taps.dim(1)});
  copy_rows(context, gathered, taps, on_device(context, std::span<const int32_t>(rows_)));
  const int64_t rows = gathered.dim(0);
  const int64_t kv_size = config_.transformer.key_value_size();
  const auto num_layers = static_cast<int64_t>(weights.layers.size());
  const auto eps = static_cast<float>(config_.transformer.rms_norm_eps);
  const BatchView batch = batch_.view(context);
  if (is_repeated(context)) return;
  const TensorView c = context.arena->take_f32({rows, config_.transformer.hidden_size});
  const TensorView kv = context.arena->take_f32({rows, num_layers * 2 * kv_size});
  const TensorView rope_rows = context.arena->take_f32({rows, config_.transformer.head_dim});

  linear(context, {.out = c, .x = gathered, .weights = {&weights.fc, 1}});
  rms_norm(context, c, c, weights.hidden_norm, eps);
  record(context, "taps", rows_of(gathered, 0, recorded));
  record(context, "context_features", rows_of(c, 0, recorded));
  linear(context, {.out = kv, .x = c, .weights = weights.context_kv_proj});
  rope_table(context, rope_rows, batch.positions, inv_freq,
             static_cast<float>(config_.transformer.rope.attention_factor));
  for (int64_t index = 0; index < num_layers; ++index) {
    const DecoderLayer& layer = weights.layers[static_cast<size_t>(index)].decoder;
    const int64_t column = index * 2 * kv_size;
    qkv_finish(context, {.q = columns_of(kv, column, 0),  // the context asks nothing
                         .k = columns_of(kv, column, kv_size),
                         .v = columns_of(kv, column + kv_size, kv_size),
                         .q_norm = layer.q_norm,
                         .k_norm = layer.k_norm,
                         .eps = eps,
                         .rope = rope_rows,
                         .kv = cache_.layer(static_cast<int32_t>(index)),
                         .batch = batch});
  }
}

void ContextKv::record_pages(Context& context, int32_t slot) {
  const auto first = static_cast<int32_t>(cache_.first_position_held(slot));
  for (int32_t index = 0; index < static_cast<int32_t>(config_.transformer.num_hidden_layers); ++index) {
    const PagedKvView kv = cache_.layer(index);
    const Shape one_position{1, kv.num_kv_heads, kv.head_dim};
    for (const auto& [name, pages] : {std::pair("context_k", kv.k), std::pair("context_v", kv.v)}) {
      const std::string tensor = fmt::format("{}.{}", name, index);
      for (int32_t position = first; position < length(slot); ++position) {
        const std::vector<float> vectors = vectors_at(context, kv, pages, cache_.page_table(slot), position);
        context.recorder->append(tensor, view_f32(vectors.data(), one_position));
      }
    }
  }
}

size_t ContextKv::scratch_bytes(const DrafterConfig& config) {
  const TransformerConfig& transformer = config.transformer;
  const auto taps = static_cast<int64_t>(config.target_layer_ids.size()) * config.target_hidden_size;
  return arena_bytes_f32(kContextRows * taps) + arena_bytes_f32(kContextRows * transformer.hidden_size) +
         arena_bytes_f32(kContextRows * transformer.num_hidden_layers * 2 * transformer.key_value_size()) +
         arena_bytes_f32(kContextRows * transformer.head_dim) +
         linear_scratch_bytes(kContextRows, std::max(taps, transformer.hidden_size));
}

}  // namespace blockdraft
