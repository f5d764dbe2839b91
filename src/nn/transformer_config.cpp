#include "nn/transformer_config.h"

#include <optional>

#include "base/error.h"
#include "nn/config_errors.h"

namespace blockdraft {
namespace {

// What the reference's model class assumes when the key is absent.
constexpr int64_t kDefaultMaxPositionEmbeddings = 32768;
constexpr double kDefaultRmsNormEps = 1e-6;

Status refuse_other_mlps(const ConfigReader& config) {
  for (const char* key : {"hidden_act", "hidden_activation"}) {
    BLOCKDRAFT_ASSIGN(const auto activation, config.optional_string(key));
    if (activation.value_or("silu") != "silu") return unsupported_value(config, config.find(key), "\"silu\"");
  }
  BLOCKDRAFT_ASSIGN(const auto mlp_bias, config.optional_boolean("mlp_bias"));
  if (mlp_bias.value_or(false)) return unsupported_value(config, config.find("mlp_bias"), "false");
  return {};
}

Result<int64_t> read_head_dim(const ConfigReader& config, int64_t hidden_size, int64_t num_attention_heads) {
  BLOCKDRAFT_ASSIGN(const auto given, config.optional_integer("head_dim", kExtent));
  if (given) {
    if (*given % 2 != 0) return config.wrong_value(config.find("head_dim"), "an even integer");
    return *given;
  }
  if (hidden_size % (2 * num_attention_heads) != 0) {
    return config.missing("head_dim", fmt::format("an even integer, for hidden_size {} is no even multiple of "
                                                  "num_attention_heads {}",
                                                  hidden_size, num_attention_heads));
  }
  return hidden_size / num_attention_heads;
}

Status read_heads(const ConfigReader& config, TransformerConfig& transformer) {
  BLOCKDRAFT_ASSIGN(transformer.num_attention_heads, config.integer("num_attention_heads", kExtent));
  const int64_t heads = transformer.num_attention_heads;
  BLOCKDRAFT_ASSIGN(const auto key_value_heads, config.optional_integer("num_key_value_heads", kExtent));
  transformer.num_key_value_heads = key_value_heads.value_or(heads);
  if (heads % transformer.num_key_value_heads != 0) {
    return config.wrong_value(config.find("num_key_value_heads"),
                              fmt::format("a divisor of num_attention_heads {}", heads));
  }
  BLOCKDRAFT_ASSIGN(transformer.head_dim, read_head_dim(config, transformer.hidden_size, heads));
  return {};
}

Result<double> read_rms_norm_eps(const ConfigReader& config) {
  BLOCKDRAFT_ASSIGN(const auto eps, config.optional_number("rms_norm_eps"));
  if (!eps) return kDefaultRmsNormEps;
  // The kernels take it as float32, where it must not vanish either.
  if (!is_positive_float32(*eps)) {
    return config.wrong_value(config.find("rms_norm_eps"), "a positive float32");
  }
  return *eps;
}

}  // namespace

Result<TransformerConfig> read_transformer_config(const ConfigReader& config,
                                                  std::optional<int64_t> default_vocab_size) {
  TransformerConfig transformer;
  BLOCKDRAFT_TRY(refuse_other_mlps(config));
  BLOCKDRAFT_ASSIGN(transformer.hidden_size, config.integer("hidden_size", kExtent));
  BLOCKDRAFT_ASSIGN(transformer.intermediate_size, config.integer("intermediate_size", kExtent));
  BLOCKDRAFT_ASSIGN(transformer.num_hidden_layers, config.integer("num_hidden_layers", kLayerCount));
  BLOCKDRAFT_TRY(read_heads(config, transformer));
  if (default_vocab_size && !config.has("vocab_size")) {
    transformer.vocab_size = *default_vocab_size;
  } else {
    BLOCKDRAFT_ASSIGN(transformer.vocab_size, config.integer("vocab_size", kExtent));
  }
  BLOCKDRAFT_ASSIGN(const auto max_positions, config.optional_integer("max_position_embeddings", kExtent));
  transformer.max_position_embeddings = max_positions.value_or(kDefaultMaxPositionEmbeddings);
  BLOCKDRAFT_ASSIGN(transformer.rms_norm_eps, read_rms_norm_eps(config));
  BLOCKDRAFT_ASSIGN(const auto attention_bias, config.optional_boolean("attention_bias"));
  transformer.attention_bias = attention_bias.value_or(false);
  BLOCKDRAFT_ASSIGN(transformer.rope,
                    read_rope_config(config, transformer.max_position_embeddings, transformer.warnings));
  return transformer;
}

}  // namespace blockdraft
