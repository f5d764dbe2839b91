// The drafter's context: K/V made from taps alone (spec 1.4).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "draft/draft_source.h"
#include "draft/drafter_config.h"
#include "draft/drafter_weights.h"
#include "nn/batch.h"
#include "nn/kv_cache.h"
#include "ops/linear.h"
#include "tensor/context.h"
#include "tensor/recorder.h"

namespace blockdraft {

// Context rows are made this many at a time; memory does not grow with the prompt.
inline constexpr int32_t kContextRows = kPromptRows;
inline constexpr int32_t kPaddedRows = 16;

// Context K/V of all layers and sequences, and the room for block rows behind them: the block's own K/V lie at their
// positions in the same pages until the next context rows overwrite them.
// If every layer slides, pages below the window are given back, and memory is a function of the window.
class ContextKv {
 public:
  static KvCacheShape shape(const DrafterConfig& config, int32_t max_sequences, int64_t max_positions,
                            DType dtype = DType::f32);
  ContextKv(const DrafterConfig& config, const KvCacheShape& shape, KvCache cache);

  // c = hidden_norm(fc u); K = rope(k_norm(k_proj c)), V = v_proj c for every layer, appended to the sequences.
  // On a card passes of up to kContextRows rows are padded to a multiple of kPaddedRows, so that they differ little;
  // with Context::prompt_products to kPromptRows.
  void extend(Context& context, const DrafterWeights& weights, ConstTensorView inv_freq, ConstTensorView taps,
              std::span<const TapRows> rows);
  static size_t scratch_bytes(const DrafterConfig& config);

  // The earliest position that the sequence can be truncated to: 0, or what the windows have let go of.
  int32_t earliest_length(int32_t slot) const;
  // Forgets the context from `length` on; length is from earliest_length() to length().
  void truncate(int32_t slot, int32_t length);
  int32_t length(int32_t slot) const { return length_[static_cast<size_t>(slot)]; }
  void reset(int32_t slot);
  KvCache& cache() { return cache_; }
  // Gives the recorder "context_k.LAYER" and "context_v.LAYER" [positions, heads, head_dim]: what the pages hold of the
  // sequence's context. It ends at length() - 1, and begins at 0 or, if every layer slides, with the first page that is
  // still held.
  void record_pages(Context& context, int32_t slot);

 private:
  void flush(Context& context, const DrafterWeights& weights, ConstTensorView inv_freq, ConstTensorView taps);
  void append_rows(int32_t slot, int32_t first_row, int32_t num_rows);

  const DrafterConfig& config_;
  KvCache cache_;
  int32_t largest_window_ = 0;   // 0: some layer sees everything
  std::vector<int32_t> length_;  // [max_sequences] context positions held
  Batch batch_;
  std::vector<int32_t> rows_;  // [rows of batch_] which rows of the taps they are
};

}  // namespace blockdraft
