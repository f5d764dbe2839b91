// A target: the model whose output is promised. What an engine needs of it, whatever its layers are.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "blockdraft/result.h"
#include "checkpoint/checkpoint.h"
#include "nn/batch.h"
#include "nn/weight_store.h"
#include "target/target_config.h"
#include "tensor/context.h"
#include "tensor/tensor_view.h"
#include "tensor/weight_view.h"

namespace blockdraft {

struct TargetLimits {
  int32_t max_sequences = 1;
  int64_t max_positions = 0;  // highest position + 1 of any sequence
  int32_t max_rows = 0;       // of one forward pass
};

// One forward pass. All spans and views are borrowed.
struct TargetPass {
  std::span<const SequenceRows> sequences;  // each begins at its sequence's committed length
  // [rows] where the ops are, in place of the ids of `sequences`, of which only the number counts then; or null.
  const int32_t* token_ids = nullptr;
  // Rows of the flattened batch whose final-normed hidden state is wanted, ascending; hidden: [their number, hidden].
  std::span<const int32_t> hidden_rows;
  TensorView hidden;
  // Taps: output of decoder layer tap_layer_ids[i], raw residual stream (spec 1.3; -1: the embeddings), into columns
  // i * hidden .. of taps [rows, number of ids * hidden]. Any order, none if empty.
  std::span<const int32_t> tap_layer_ids;
  TensorView taps;
};

// A forward pass leaves state behind in each of its sequences (K/V, or a recurrent state), for all rows of the pass.
// That state is tentative until commit() says how many of the rows stay; the rest is rolled back as if it had never
// been. Between two passes of a sequence there is exactly one commit. Committed rows have the same bits whether they
// came alone or with others (docs/architecture.md).
//
// Weights are immutable after load. The object is used by one thread at a time.
class Target {
 public:
  virtual ~Target() = default;

  virtual const TargetConfig& config() const = 0;
  virtual WeightView embed_tokens() const = 0;  // [vocabulary, hidden]
  virtual WeightView lm_head() const = 0;       // [vocabulary, hidden]; with the values of embed_tokens if tied
  virtual float embedding_scale() const = 0;    // what the target multiplies embedding rows by

  // Room for `rows` more rows of the sequence. Within the limits it cannot fail.
  virtual void reserve(int32_t slot, int32_t rows) = 0;
  // With Context::prompt_products: at most kPromptRows rows (ops/linear.h), with ids of `sequences`.
  virtual void forward(Context& context, const TargetPass& pass) = 0;
  // Keeps the first `rows` rows of the last pass in the sequence's state.
  virtual void commit(int32_t slot, int32_t rows) = 0;
  // Forgets the sequence: committed length 0.
  virtual void reset(int32_t slot) = 0;
  virtual int64_t committed_length(int32_t slot) const = 0;

  virtual size_t state_bytes() const = 0;
  virtual size_t scratch_bytes(int32_t num_threads) const = 0;  // arena bytes that forward takes at most
  // For the memory plan and the roofline.
  virtual size_t mapped_bytes() const = 0;
  virtual size_t converted_bytes() const = 0;            // of weights in memory of its own (WeightStore)
  virtual int64_t weight_bytes() const = 0;              // read by one pass, output head included
  virtual int64_t state_bytes_per_position() const = 0;  // K/V read for each position of the context
  virtual int64_t flops_per_row() const = 0;
};

// What a target takes beside its weights, from its config alone.
struct TargetMemory {
  size_t state_bytes = 0;
  size_t scratch_bytes = 0;  // arena bytes that forward takes at most
};
TargetMemory target_memory(const TargetConfig& config, const TargetLimits& limits, int32_t num_threads);

// Asks `store` for every tensor that a target with this config has, as load_target does, and refuses others. With a
// store that reads no values it is the check of a folder that need not hold its data.
Status check_target_tensors(WeightStore& store, const TargetConfig& config);

// Opens the weights of a target folder whose config was read. `loading` decides what linear weights and the head are in
// memory; the table of embeddings stays as stored.
Result<std::unique_ptr<Target>> load_target(const WeightSource& source, const TargetConfig& config,
                                            const TargetLimits& limits, const WeightLoading& loading = {});

}  // namespace blockdraft
