// A Qwen3-shaped decoder layer (spec 1.6), used by targets and drafters alike: weights, and its two sublayers.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "base/error.h"
#include "blockdraft/result.h"
#include "nn/transformer_config.h"
#include "nn/weight_store.h"
#include "tensor/batch_view.h"
#include "tensor/context.h"
#include "tensor/paged_kv.h"
#include "tensor/tensor_view.h"
#include "tensor/weight_view.h"

namespace blockdraft {

struct DecoderLayer {
  ConstTensorView input_layernorm;           // [hidden]
  std::array<WeightView, 3> qkv_proj;        // [heads * head_dim, hidden], twice [kv_heads * head_dim, hidden]
  ConstTensorView q_norm, k_norm;            // [head_dim], without data if config.qk_norm is false
  WeightView o_proj;                         // [hidden, heads * head_dim]
  ConstTensorView post_attention_layernorm;  // [hidden]
  std::array<WeightView, 2> gate_up_proj;    // each [inner, hidden]
  WeightView down_proj;                      // [hidden, inner]
};

// Loads the tensors named `prefix`input_layernorm.weight and so on.
Result<DecoderLayer> load_decoder_layer(WeightStore& store, const TransformerConfig& config, const std::string& prefix);

// Calls visit(weight) for every matrix and every norm of the layer (WeightView&, ConstTensorView&), as long as its
// Status is good.
template <class Layer, class Visit>
Status visit_decoder_layer(Layer& layer, Visit visit) {
  for (auto& weight : layer.qkv_proj) BLOCKDRAFT_TRY(visit(weight));
  BLOCKDRAFT_TRY(visit(layer.o_proj));
  for (auto& weight : layer.gate_up_proj) BLOCKDRAFT_TRY(visit(weight));
  BLOCKDRAFT_TRY(visit(layer.down_proj));
  for (auto* norm : {&layer.input_layernorm, &layer.q_norm, &layer.k_norm, &layer.post_attention_layernorm}) {
    BLOCKDRAFT_TRY(visit(*norm));
  }
  return {};
}

// Which keys a layer's rows see (ops/attention.h).
struct AttentionMask {
  bool causal = true;
  int32_t window = 0;
};

// What the rows of one pass have in common.
struct LayerInput {
  const TransformerConfig& config;
  BatchView batch;
  ConstTensorView rope;  // rope_table of the batch's positions
};

// What a sublayer does with its result: y becomes it, or y (the residual stream) gets it added.
enum class SublayerOutput { replaces, adds };

// y = o_proj(attention(qkv_proj(x))), writing K and V of the rows to the pages first.
//   x: [rows, hidden], the sublayer's input, f32 or activation_type().  y: [rows, hidden] f32.
void attention_sublayer(Context& context, const DecoderLayer& layer, const LayerInput& input, const AttentionMask& mask,
                        const PagedKvView& kv, ConstTensorView x, TensorView y, SublayerOutput output);

// y = down_proj(silu(gate_proj(x)) * up_proj(x)).
void mlp_sublayer(Context& context, const DecoderLayer& layer, const LayerInput& input, ConstTensorView x, TensorView y,
                  SublayerOutput output);

// The whole layer, in place on h. Takes decoder_layer_scratch_bytes from the arena of a CPU and gives it back; what it
// takes on a card is measured (engine/scratch_trial.cpp).
void decoder_layer(Context& context, const DecoderLayer& layer, const LayerInput& input, const AttentionMask& mask,
                   const PagedKvView& kv, TensorView h);
// On a card attention takes cu::attention_scratch_bytes() beyond these.
size_t decoder_layer_scratch_bytes(const TransformerConfig& config, int32_t num_threads, int64_t rows);

// Weights and their arithmetic: bytes that a pass reads, multiplications and additions of a row.
int64_t decoder_layer_bytes(const DecoderLayer& layer);
int64_t decoder_layer_flops_per_row(const DecoderLayer& layer);

}  // namespace blockdraft
