#include "draft/drafter_config.h"

#include <algorithm>
#include <limits>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "base/json.h"
#include "draft/draft_keys.h"
#include "draft/drafter_kind.h"
#include "draft/drafter_layers.h"
#include "nn/config_errors.h"

namespace blockdraft {
namespace {

// As many rows as a cycle may have for all its sequences together.
constexpr IntegerRange kBlockSize{1, 1024};

Status refuse_other_value_heads(DraftKeys& keys, int64_t head_dim) {
  BLOCKDRAFT_ASSIGN(const auto v_head_dim, keys.optional_integer("v_head_dim"));
  if (v_head_dim.value_or(head_dim) == head_dim) return {};
  return unsupported_value(keys.config(), keys.find("v_head_dim"), fmt::format("head_dim {}", head_dim));
}

Status check_attention_mode(DraftKeys& keys, const TransformerConfig& transformer) {
  BLOCKDRAFT_ASSIGN(const auto mode, keys.optional_string("attention_mode"));
  if (!mode) return {};
  const ConfigValue found = keys.find("attention_mode");
  const bool grouped = transformer.num_key_value_heads < transformer.num_attention_heads;
  if (*mode != "gqa" && *mode != "mha") return unsupported_value(keys.config(), found, "\"gqa\" or \"mha\"");
  if (grouped != (*mode == "gqa")) {
    return keys.config().wrong_value(
        found, fmt::format("\"{}\" with num_attention_heads {} and num_key_value_heads {}", grouped ? "gqa" : "mha",
                           transformer.num_attention_heads, transformer.num_key_value_heads));
  }
  return {};
}

Result<int32_t> read_block_size(DraftKeys& keys) {
  BLOCKDRAFT_ASSIGN(const auto block_size, keys.optional_integer("block_size", kBlockSize));
  if (!block_size) {
    return keys.config().missing("block_size", "an integer of at least 2, at the top level or in dflash_config");
  }
  if (*block_size == 1) {
    return unsupported_value(keys.config(), keys.find("block_size"), "at least 2: a block of 1 has no drafts");
  }
  return static_cast<int32_t>(*block_size);
}

Result<int32_t> read_mask_token_id(DraftKeys& keys, int64_t vocab_size) {
  BLOCKDRAFT_ASSIGN(const auto id, keys.optional_integer("mask_token_id", {0, vocab_size - 1}));
  if (!id) {
    return keys.config().missing(
        "mask_token_id", fmt::format("an id below vocab_size {}, at the top level or in dflash_config", vocab_size));
  }
  return static_cast<int32_t>(*id);
}

// A key that may hold the layer ids, and what it adds to the z-lab numbering (spec 1.3).
struct LayerIdsKey {
  std::string_view key;
  int64_t offset;
};
constexpr LayerIdsKey kLayerIdsKeys[] = {{"target_layer_ids", 0},
                                         {"layer_ids", 0},
                                         {"eagle_aux_hidden_state_layer_ids", 1},
                                         {"aux_hidden_state_layer_ids", 1}};

bool has_duplicates(std::vector<int32_t> ids) {
  std::sort(ids.begin(), ids.end());
  return std::adjacent_find(ids.begin(), ids.end()) != ids.end();
}

Result<std::vector<int32_t>> parse_layer_ids(const ConfigReader& config, const ConfigValue& found, int64_t offset,
                                             std::optional<int64_t> num_target_layers) {
  const int64_t count = num_target_layers.value_or(kLayerCount.max);
  BLOCKDRAFT_ASSIGN(const auto listed, integers_from(config, found, {offset, count - 1 + offset}));
  std::vector<int32_t> ids;
  for (const int64_t id : listed) ids.push_back(static_cast<int32_t>(id - offset));
  if (ids.empty()) return config.wrong_value(found, "at least one layer");
  if (has_duplicates(ids)) return config.wrong_value(found, "each layer at most once");
  return ids;
}

Status compute_layer_ids(const ConfigReader& config, DrafterConfig& drafter) {
  if (!drafter.num_target_layers) {
    return config.missing("target_layer_ids", "a list of target layers, or num_target_layers to compute it from");
  }
  const int64_t count = *drafter.num_target_layers;
  drafter.target_layer_ids = fallback_layer_ids(count, drafter.transformer.num_hidden_layers);
  drafter.target_layer_ids_computed = true;
  const std::string ids = json_excerpt(Json(drafter.target_layer_ids));
  const auto outside = [count](int32_t id) { return id < 0 || id >= count; };
  if (has_duplicates(drafter.target_layer_ids) ||
      std::any_of(drafter.target_layer_ids.begin(), drafter.target_layer_ids.end(), outside)) {
    return config.missing("target_layer_ids",
                          fmt::format("a list of target layers: what num_target_layers {} and num_hidden_layers {} "
                                      "give, {}, is not one",
                                      count, drafter.transformer.num_hidden_layers, ids));
  }
  drafter.warnings.push_back(
      fmt::format("{}: no target_layer_ids; {} computed from num_target_layers {} and "
                  "num_hidden_layers {}",
                  config.origin(), ids, count, drafter.transformer.num_hidden_layers));
  return {};
}

Status read_layer_ids(DraftKeys& keys, DrafterConfig& drafter) {
  const ConfigReader& config = keys.config();
  BLOCKDRAFT_ASSIGN(drafter.num_target_layers, keys.optional_integer("num_target_layers", kLayerCount));
  ConfigValue used;
  for (const LayerIdsKey& entry : kLayerIdsKeys) {
    const ConfigValue found = keys.find(entry.key);
    if (found.value == nullptr) continue;
    BLOCKDRAFT_ASSIGN(auto ids, parse_layer_ids(config, found, entry.offset, drafter.num_target_layers));
    if (used.value == nullptr) {
      used = found;
      drafter.target_layer_ids = std::move(ids);
    } else if (ids != drafter.target_layer_ids) {
      drafter.warnings.push_back(disagreement(config, used, found));
    }
  }
  return used.value == nullptr ? compute_layer_ids(config, drafter) : Status();
}

Status read_widths(DraftKeys& keys, DrafterConfig& drafter) {
  const TransformerConfig& transformer = drafter.transformer;
  BLOCKDRAFT_ASSIGN(const auto target_hidden_size, keys.optional_integer("target_hidden_size", kExtent));
  drafter.target_hidden_size = target_hidden_size.value_or(transformer.hidden_size);
  BLOCKDRAFT_ASSIGN(const auto vocab, keys.optional_integer("draft_vocab_size", {1, transformer.vocab_size}));
  drafter.draft_vocab_size = vocab.value_or(transformer.vocab_size);
  return {};
}

Result<std::optional<float>> optional_positive(DraftKeys& keys, std::string_view key) {
  BLOCKDRAFT_ASSIGN(const auto number, keys.optional_number(key));
  if (!number) return std::optional<float>();
  if (!is_positive_float32(*number)) return keys.config().wrong_value(keys.find(key), "a number above 0");
  return std::optional<float>(static_cast<float>(*number));
}

// logit_scale is another reader's name of output_multiplier (spec 2.2).
Status read_output_multiplier(DraftKeys& keys, DrafterConfig& drafter) {
  BLOCKDRAFT_ASSIGN(const auto multiplier, optional_positive(keys, "output_multiplier"));
  BLOCKDRAFT_ASSIGN(const auto scale, optional_positive(keys, "logit_scale"));
  if (multiplier && scale && *multiplier != *scale) {
    drafter.warnings.push_back(disagreement(keys.config(), keys.find("output_multiplier"), keys.find("logit_scale")));
  }
  drafter.output_multiplier = multiplier.value_or(scale.value_or(1.0f));
  return {};
}

Status read_scales(DraftKeys& keys, DrafterConfig& drafter) {
  constexpr double kLargest = std::numeric_limits<float>::max();
  const ConfigReader& config = keys.config();
  BLOCKDRAFT_TRY(read_output_multiplier(keys, drafter));
  BLOCKDRAFT_ASSIGN(const auto softcap, keys.optional_number("final_logit_softcapping"));
  if (softcap && (*softcap < 0.0 || *softcap > kLargest)) {
    return config.wrong_value(keys.find("final_logit_softcapping"), "a number of at least 0");
  }
  drafter.final_logit_softcapping = static_cast<float>(softcap.value_or(0.0));
  BLOCKDRAFT_ASSIGN(drafter.input_embedding_scale, optional_positive(keys, "input_embedding_scale"));
  return {};
}

}  // namespace

std::vector<int32_t> fallback_layer_ids(int64_t num_target_layers, int64_t num_hidden_layers) {
  CHECK(num_target_layers >= 1 && num_hidden_layers >= 1);
  if (num_hidden_layers == 1) return {static_cast<int32_t>(num_target_layers / 2)};
  constexpr int64_t kFirst = 1;
  const int64_t span = num_target_layers - 3 - kFirst;
  const int64_t steps = num_hidden_layers - 1;
  std::vector<int32_t> ids;
  for (int64_t k = 0; k < num_hidden_layers; ++k) {
    const int64_t scaled = k * span;  // the id is kFirst + scaled / steps, rounded
    int64_t below = scaled / steps;
    if (below * steps > scaled) --below;  // towards minus infinity: span is negative for tiny targets
    const int64_t id = kFirst + below;
    const int64_t twice_rest = 2 * (scaled - below * steps);
    const bool round_up = twice_rest > steps || (twice_rest == steps && id % 2 != 0);  // a half goes to even
    ids.push_back(static_cast<int32_t>(round_up ? id + 1 : id));
  }
  return ids;
}

Result<DrafterConfig> read_drafter_config(const Json& document, std::string origin) {
  if (!document.is_object()) {
    return make_error(Code::corrupt_file, "{}: found {}, expected an object", origin, json_type_name(document));
  }
  DrafterConfig drafter;
  drafter.origin = origin;
  const ConfigReader config(document, std::move(origin));
  BLOCKDRAFT_ASSIGN(DraftKeys keys, DraftKeys::open(config, drafter.warnings));
  BLOCKDRAFT_ASSIGN(drafter.architecture, read_plain_dflash_architecture(keys));

  BLOCKDRAFT_ASSIGN(drafter.transformer, read_transformer_config(config));
  TransformerConfig& transformer = drafter.transformer;
  drafter.warnings.insert(drafter.warnings.end(), transformer.warnings.begin(), transformer.warnings.end());
  transformer.warnings.clear();
  BLOCKDRAFT_TRY(refuse_other_value_heads(keys, transformer.head_dim));
  BLOCKDRAFT_TRY(check_attention_mode(keys, transformer));
  BLOCKDRAFT_ASSIGN(drafter.layers, read_drafter_layers(keys, transformer.num_hidden_layers, drafter.warnings));

  BLOCKDRAFT_ASSIGN(drafter.block_size, read_block_size(keys));
  BLOCKDRAFT_ASSIGN(drafter.mask_token_id, read_mask_token_id(keys, transformer.vocab_size));
  BLOCKDRAFT_TRY(read_layer_ids(keys, drafter));
  BLOCKDRAFT_TRY(read_widths(keys, drafter));
  BLOCKDRAFT_TRY(read_scales(keys, drafter));
  return drafter;
}

Result<DrafterConfig> read_drafter_config(const std::filesystem::path& folder) {
  BLOCKDRAFT_ASSIGN(const Json document, read_config_json(folder));
  return read_drafter_config(document, (folder / "config.json").string());
}

}  // namespace blockdraft
