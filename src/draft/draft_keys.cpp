#include "draft/draft_keys.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/error.h"
#include "base/json.h"

namespace blockdraft {
namespace {

// Keys that may stand in dflash_config or dspark_config: those that this reader uses or refuses, and those that say
// nothing about inference (spec 2.2).
constexpr std::string_view kKnownKeys[] = {
    "block_size", "mask_token_id", "mask_token", "target_layer_ids", "layer_ids", "eagle_aux_hidden_state_layer_ids",
    "aux_hidden_state_layer_ids", "num_target_layers", "input_embedding_scale", "output_multiplier",
    "final_logit_softcapping", "logit_scale", "is_causal", "causal", "use_swa", "swa_window_size", "projector_type",
    "attention_mode", "shift_label", "sample_from_anchor", "draft_vocab_size", "target_hidden_size",
    "sliding_window_non_causal", "is_neox_style", "rope_is_neox_style",
    // Of other kinds of drafters.
    "conv_kernel_size", "conv_group_size", "selector_rank", "selector_top_k", "markov_rank", "markov_head_type",
    "enable_confidence_head", "confidence_head_with_markov", "attention_value_scale", "attention_sink_bias",
    "add_swa_attention_sink_bias", "backbone_rotary_base", "partial_rotary_factor", "v_head_dim", "gating",
    // Training and bookkeeping.
    "num_anchors", "loss_decay_gamma", "confidence_head_alpha", "use_aux_hidden_state", "draft_topk",
    "runtime_block_size", "n_target_features", "has_embed_tokens", "has_lm_head", "emb_dim", "gru_hidden_dim",
    "pure_draft_prefix_len"};

// Keys of the transformer: where there is a transformer_layer_config, copies elsewhere do not count.
constexpr std::string_view kTransformerKeys[] = {"hidden_size",
                                                 "intermediate_size",
                                                 "num_hidden_layers",
                                                 "num_attention_heads",
                                                 "num_key_value_heads",
                                                 "head_dim",
                                                 "vocab_size",
                                                 "max_position_embeddings",
                                                 "rms_norm_eps",
                                                 "hidden_act",
                                                 "hidden_activation",
                                                 "attention_bias",
                                                 "mlp_bias",
                                                 "rope_theta",
                                                 "rope_scaling",
                                                 "rope_parameters",
                                                 "layer_types",
                                                 "sliding_window",
                                                 "use_sliding_window"};

bool is_known(std::string_view key) {
  return std::find(std::begin(kKnownKeys), std::end(kKnownKeys), key) != std::end(kKnownKeys);
}

}  // namespace

std::string disagreement(const ConfigReader& config, const ConfigValue& used, const ConfigValue& other) {
  return fmt::format("{}: key '{}' is {} but '{}' is {}; the first is used", config.origin(), used.name,
                     json_excerpt(*used.value), other.name, json_excerpt(*other.value));
}

Result<DraftKeys> DraftKeys::open(const ConfigReader& config, std::vector<std::string>& warnings) {
  DraftKeys keys(config, warnings);
  BLOCKDRAFT_ASSIGN(keys.dflash_config_, config.optional_object("dflash_config"));
  BLOCKDRAFT_ASSIGN(keys.dspark_config_, config.optional_object("dspark_config"));
  BLOCKDRAFT_ASSIGN(keys.transformer_, config.optional_object("transformer_layer_config"));
  if (keys.transformer_) keys.warn_of_other_copies(*keys.transformer_);
  if (keys.dflash_config_) keys.warn_of_unknown_keys(*keys.dflash_config_, *config.find("dflash_config").value);
  if (keys.dspark_config_) keys.warn_of_unknown_keys(*keys.dspark_config_, *config.find("dspark_config").value);
  return keys;
}

void DraftKeys::warn_of_unknown_keys(const ConfigReader& nested, const Json& object) {
  for (const auto& [key, value] : object.items()) {
    if (value.is_null() || is_known(key)) continue;
    warnings_->push_back(fmt::format("{}: key '{}' is {}; it is not known and not used", nested.origin(),
                                     printable(nested.find(key).name), json_excerpt(value)));
  }
}

void DraftKeys::warn_of_other_copies(const ConfigReader& transformer) {
  for (const std::string_view key : kTransformerKeys) {
    const ConfigValue used = transformer.find(key);
    const ConfigValue other = config_.find(key);
    if (other.value == nullptr) continue;
    if (used.value == nullptr) {
      warnings_->push_back(fmt::format("{}: key '{}' is {}; it is looked for in transformer_layer_config and not used",
                                       config_.origin(), other.name, json_excerpt(*other.value)));
    } else if (*used.value != *other.value) {
      warnings_->push_back(disagreement(config_, used, other));
    }
  }
}

std::vector<ConfigValue> DraftKeys::copies(std::string_view key) const {
  std::vector<ConfigValue> found;
  const auto add = [&found](ConfigValue copy) {
    if (copy.value != nullptr) found.push_back(std::move(copy));
  };
  add(config_.find(fmt::format("dspark_{}", key)));
  if (key == "mask_token_id") add(config_.find("dspark_noise_token_id"));
  if (dflash_config_) add(dflash_config_->find(key));
  if (dspark_config_) add(dspark_config_->find(key));
  add(config_.find(key));
  return found;
}

ConfigValue DraftKeys::find(std::string_view key) const {
  const std::vector<ConfigValue> found = copies(key);
  if (found.empty()) return {nullptr, std::string(key)};
  for (const ConfigValue& copy : found) {
    if (*copy.value == *found.front().value) continue;
    std::string warning = disagreement(config_, found.front(), copy);
    if (std::find(warnings_->begin(), warnings_->end(), warning) == warnings_->end()) {
      warnings_->push_back(std::move(warning));
    }
  }
  return found.front();
}

Result<std::optional<int64_t>> DraftKeys::optional_integer(std::string_view key, IntegerRange range) const {
  return optionally<int64_t>(find(key), [&](const ConfigValue& found) { return integer_from(config_, found, range); });
}

Result<std::optional<double>> DraftKeys::optional_number(std::string_view key) const {
  return optionally<double>(find(key), [&](const ConfigValue& found) { return number_from(config_, found); });
}

Result<std::optional<bool>> DraftKeys::optional_boolean(std::string_view key) const {
  return optionally<bool>(find(key), [&](const ConfigValue& found) { return boolean_from(config_, found); });
}

Result<std::optional<std::string>> DraftKeys::optional_string(std::string_view key) const {
  return optionally<std::string>(find(key), [&](const ConfigValue& found) { return string_from(config_, found); });
}

}  // namespace blockdraft
