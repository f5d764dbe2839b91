#include "nn/decoder_layer.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "nn/activation_type.h"
#include "ops/attention.h"
#include "ops/linear.h"
#include "ops/linear_silu_mul.h"
#include "ops/qkv_finish.h"
#include "ops/rms_norm.h"

namespace blockdraft {
namespace {

float epsilon(const LayerInput& input) { return static_cast<float>(input.config.rms_norm_eps); }

template <class Visit>
void for_each_matrix(const DecoderLayer& layer, Visit visit) {
  for (const WeightView& weight : layer.qkv_proj) visit(weight);
  visit(layer.o_proj);
  for (const WeightView& weight : layer.gate_up_proj) visit(weight);
  visit(layer.down_proj);
}

}  // namespace

Result<DecoderLayer> load_decoder_layer(WeightStore& store, const TransformerConfig& config,
                                        const std::string& prefix) {
  const int64_t hidden = config.hidden_size;
  const int64_t q = config.query_size();
  const int64_t kv = config.key_value_size();
  const int64_t inner = config.intermediate_size;
  const bool bias = config.attention_bias;
  DecoderLayer layer;
  BLOCKDRAFT_ASSIGN(layer.input_layernorm, store.vector(prefix + "input_layernorm.weight", hidden));
  BLOCKDRAFT_ASSIGN(layer.qkv_proj[0], store.matrix(prefix + "self_attn.q_proj", q, hidden, bias));
  BLOCKDRAFT_ASSIGN(layer.qkv_proj[1], store.matrix(prefix + "self_attn.k_proj", kv, hidden, bias));
  BLOCKDRAFT_ASSIGN(layer.qkv_proj[2], store.matrix(prefix + "self_attn.v_proj", kv, hidden, bias));
  if (config.qk_norm) {
    BLOCKDRAFT_ASSIGN(layer.q_norm, store.vector(prefix + "self_attn.q_norm.weight", config.head_dim));
    BLOCKDRAFT_ASSIGN(layer.k_norm, store.vector(prefix + "self_attn.k_norm.weight", config.head_dim));
  }
  BLOCKDRAFT_ASSIGN(layer.o_proj, store.matrix(prefix + "self_attn.o_proj", hidden, q, bias));
  BLOCKDRAFT_ASSIGN(layer.post_attention_layernorm, store.vector(prefix + "post_attention_layernorm.weight", hidden));
  BLOCKDRAFT_ASSIGN(layer.gate_up_proj[0], store.matrix(prefix + "mlp.gate_proj", inner, hidden));
  BLOCKDRAFT_ASSIGN(layer.gate_up_proj[1], store.matrix(prefix + "mlp.up_proj", inner, hidden));
  BLOCKDRAFT_ASSIGN(layer.down_proj, store.matrix(prefix + "mlp.down_proj", hidden, inner));
  return layer;
}

void attention_sublayer(Context& context, const DecoderLayer& layer, const LayerInput& input, const AttentionMask& mask,
                        const PagedKvView& kv, ConstTensorView x, TensorView y, SublayerOutput output) {
  const ArenaScope scope(*context.arena);
  const int64_t rows = x.dim(0);
  const int64_t q_size = input.config.query_size();
  const int64_t kv_size = input.config.key_value_size();
  const TensorView qkv = context.arena->take_f32({rows, q_size + 2 * kv_size});
  const TensorView q = columns_of(qkv, 0, q_size);
  const TensorView k = columns_of(qkv, q_size, kv_size);
  const TensorView v = columns_of(qkv, q_size + kv_size, kv_size);

  linear(context, {.out = qkv, .x = x, .weights = layer.qkv_proj});
  qkv_finish(context, {.q = q,
                       .k = k,
                       .v = v,
                       .q_norm = layer.q_norm,
                       .k_norm = layer.k_norm,
                       .eps = epsilon(input),
                       .rope = input.rope,
                       .kv = kv,
                       .batch = input.batch});
  const TensorView attended = activation_type(context) == q.dtype ? q : take_activations(context, q.shape);
  attention(context, {.out = attended,
                      .q = q,
                      .kv = kv,
                      .batch = input.batch,
                      .num_heads = static_cast<int32_t>(input.config.num_attention_heads),
                      .causal = mask.causal,
                      .window = mask.window,
                      .scale = 1.0f / std::sqrt(static_cast<float>(input.config.head_dim)),
                      .early = true,
                      .unrounded = q});
  linear(context,
         {.out = y, .x = attended, .weights = {&layer.o_proj, 1}, .accumulate = output == SublayerOutput::adds});
}

void mlp_sublayer(Context& context, const DecoderLayer& layer, const LayerInput& input, ConstTensorView x, TensorView y,
                  SublayerOutput output) {
  const ArenaScope scope(*context.arena);
  const int64_t rows = x.dim(0);
  const TensorView inner = take_activations(context, {rows, input.config.intermediate_size});
  linear_silu_mul(context, {.out = inner, .x = x, .gate = layer.gate_up_proj[0], .up = layer.gate_up_proj[1]});
  linear(context,
         {.out = y, .x = inner, .weights = {&layer.down_proj, 1}, .accumulate = output == SublayerOutput::adds});
}

void decoder_layer(Context& context, const DecoderLayer& layer, const LayerInput& input, const AttentionMask& mask,
                   const PagedKvView& kv, TensorView h) {
  const ArenaScope scope(*context.arena);
  const TensorView x = take_activations(context, h.shape);
  rms_norm(context, x, h, layer.input_layernorm, epsilon(input));
  attention_sublayer(context, layer, input, mask, kv, x, h, SublayerOutput::adds);
  rms_norm(context, x, h, layer.post_attention_layernorm, epsilon(input));
  mlp_sublayer(context, layer, input, x, h, SublayerOutput::adds);
}

size_t decoder_layer_scratch_bytes(const TransformerConfig& config, int32_t num_threads, int64_t rows) {
  const size_t attention = attention_scratch_bytes(num_threads, rows, static_cast<int32_t>(config.num_attention_heads),
                                                   static_cast<int32_t>(config.head_dim));
  const size_t products = linear_scratch_bytes(rows, std::max(config.hidden_size, config.query_size()));
  const size_t attention_part =
      arena_bytes_f32(rows * (config.query_size() + 2 * config.key_value_size())) + std::max(attention, products);
  const size_t mlp_part = arena_bytes_f32(rows * config.intermediate_size) +
                          linear_scratch_bytes(rows, std::max(config.hidden_size, config.intermediate_size));
  return arena_bytes_f32(rows * config.hidden_size) + std::max(attention_part, mlp_part);
}

int64_t decoder_layer_bytes(const DecoderLayer& layer) {
  int64_t bytes = 0;
  for_each_matrix(layer, [&](const WeightView& weight) { bytes += weight.size_bytes(); });
  return bytes;
}

int64_t decoder_layer_flops_per_row(const DecoderLayer& layer) {
  int64_t flops = 0;
  for_each_matrix(layer, [&](const WeightView& weight) { flops += 2 * weight.out_features * weight.in_features; });
  return flops;
}

}  // namespace blockdraft
