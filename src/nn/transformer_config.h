// The keys that describe a stack of Qwen3-shaped decoder layers, target or drafter (spec 2.3).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "blockdraft/result.h"
#include "checkpoint/config_reader.h"
#include "nn/rope_config.h"

namespace blockdraft {

// Layers that a stack may have: far above any model, and small enough for lists with an entry a layer.
inline constexpr IntegerRange kLayerCount{1, 4096};

// Field names are the checkpoint's own keys.
struct TransformerConfig {
  int64_t hidden_size = 0;
  int64_t intermediate_size = 0;
  int64_t num_hidden_layers = 0;
  int64_t num_attention_heads = 0;
  int64_t num_key_value_heads = 0;
  int64_t head_dim = 0;
  int64_t vocab_size = 0;
  int64_t max_position_embeddings = 0;
  double rms_norm_eps = 1e-6;
  bool attention_bias = false;  // on q, k, v and o
  bool qk_norm = true;          // the heads of q and k are normed, as in Qwen3; not a key: the architecture says so
  RopeConfig rope;

  std::vector<std::string> warnings;  // copies of a rotary key that disagree; to be logged once at load

  int64_t query_size() const { return num_attention_heads * head_dim; }
  int64_t key_value_size() const { return num_key_value_heads * head_dim; }
};

// Reads and validates all of the above with the defaults of spec 2.3: layers in kLayerCount, other extents in kExtent,
// heads divisible by K/V heads, head_dim even, hidden_act (or hidden_activation) silu and no mlp_bias (anything else is
// unsupported, by name), eps positive. `default_vocab_size`: of a config without one; absent: it is required.
Result<TransformerConfig> read_transformer_config(const ConfigReader& config,
                                                  std::optional<int64_t> default_vocab_size = {});

}  // namespace blockdraft
