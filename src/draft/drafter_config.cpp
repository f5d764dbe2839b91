#include "draft/drafter_config.h"

#include <algorithm>
#include <limits>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "draft/draft_keys.h"
#include "draft/drafter_kind.h"
#include "draft/drafter_layers.h"
#include "draft/family_config.h"
#include "draft/foreign_keys.h"
#include "draft/target_layer_ids.h"
#include "nn/config_errors.h"

namespace blockdraft {
namespace {

// As many rows as a cycle may have for all its sequences together.
constexpr IntegerRange kBlockSize{1, 1024};

Status refuse_other_value_heads(const DraftKeys& keys, int64_t head_dim) {
  BLOCKDRAFT_ASSIGN(const auto v_head_dim, keys.optional_integer("v_head_dim"));
  if (v_head_dim.value_or(head_dim) == head_dim) return {};
  return unsupported_value(keys.config(), keys.find("v_head_dim"), fmt::format("head_dim {}", head_dim));
}

// A vector of its own instead of the mask token's row (appendix A).
Status refuse_mask_embedding(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "mask_embedding.pt";
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return {};
  return make_error(Code::unsupported,
                    "{}: a mask embedding of its own, as of the MiMo variant of DFlash, expected none", path.string());
}

Status check_attention_mode(const DraftKeys& keys, const TransformerConfig& transformer) {
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

Result<int32_t> read_block_size(const DraftKeys& keys, BlockLayout layout) {
  BLOCKDRAFT_ASSIGN(const auto block_size, keys.optional_integer("block_size", kBlockSize));
  if (!block_size) {
    return keys.config().missing("block_size", "an integer, at the top level or in dflash_config");
  }
  if (*block_size == 1 && layout == BlockLayout::in_place) {
    return unsupported_value(keys.config(), keys.find("block_size"), "at least 2: a block of 1 in place has no drafts");
  }
  return static_cast<int32_t>(*block_size);
}

Result<int32_t> read_mask_token_id(const DraftKeys& keys, int64_t vocab_size) {
  BLOCKDRAFT_ASSIGN(const auto id, keys.optional_integer("mask_token_id", {0, vocab_size - 1}));
  if (!id) {
    return keys.config().missing(
        "mask_token_id", fmt::format("an id below vocab_size {}, at the top level or in dflash_config", vocab_size));
  }
  return static_cast<int32_t>(*id);
}

Status read_widths(const DraftKeys& keys, DrafterConfig& drafter) {
  const TransformerConfig& transformer = drafter.transformer;
  BLOCKDRAFT_ASSIGN(const auto target_hidden_size, keys.optional_integer("target_hidden_size", kExtent));
  drafter.target_hidden_size = target_hidden_size.value_or(transformer.hidden_size);
  BLOCKDRAFT_ASSIGN(const auto vocab, keys.optional_integer("draft_vocab_size", {1, transformer.vocab_size}));
  drafter.draft_vocab_size = vocab.value_or(transformer.vocab_size);
  return {};
}

Result<std::optional<float>> optional_positive(const DraftKeys& keys, std::string_view key) {
  BLOCKDRAFT_ASSIGN(const auto number, keys.optional_number(key));
  if (!number) return std::optional<float>();
  if (!is_positive_float32(*number)) return keys.config().wrong_value(keys.find(key), "a number above 0");
  return std::optional<float>(static_cast<float>(*number));
}

// logit_scale is another reader's name of output_multiplier (spec 2.2).
Status read_output_multiplier(const DraftKeys& keys, DrafterConfig& drafter) {
  BLOCKDRAFT_ASSIGN(const auto multiplier, optional_positive(keys, "output_multiplier"));
  BLOCKDRAFT_ASSIGN(const auto scale, optional_positive(keys, "logit_scale"));
  if (multiplier && scale && *multiplier != *scale) {
    drafter.warnings.push_back(disagreement(keys.config(), keys.find("output_multiplier"), keys.find("logit_scale")));
  }
  drafter.output_multiplier = multiplier.value_or(scale.value_or(1.0f));
  return {};
}

Status read_scales(const DraftKeys& keys, DrafterConfig& drafter) {
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

// The files of one kind leave it out (spec 2.7).
std::optional<int64_t> assumed_vocab_size(const DraftKeys& keys, const DrafterKind& kind,
                                          std::vector<std::string>& warnings) {
  constexpr int64_t kMuseVocabSize = 202048;
  if (kind.format != DrafterFormat::muse || keys.transformer().has("vocab_size")) return std::nullopt;
  warnings.push_back(fmt::format("{}: no vocab_size; {} is used, that of every Muse Glimmer assistant",
                                 keys.config().origin(), kMuseVocabSize));
  return kMuseVocabSize;
}

Status read_transformer(const DraftKeys& keys, const DrafterKind& kind, DrafterConfig& drafter) {
  const std::optional<int64_t> vocab_size = assumed_vocab_size(keys, kind, drafter.warnings);
  BLOCKDRAFT_ASSIGN(drafter.transformer, read_transformer_config(keys.transformer(), vocab_size));
  TransformerConfig& transformer = drafter.transformer;
  drafter.warnings.insert(drafter.warnings.end(), transformer.warnings.begin(), transformer.warnings.end());
  transformer.warnings.clear();
  BLOCKDRAFT_TRY(refuse_other_value_heads(keys, transformer.head_dim));
  BLOCKDRAFT_TRY(check_attention_mode(keys, transformer));
  BLOCKDRAFT_ASSIGN(drafter.layers, read_drafter_layers(keys, kind, transformer.num_hidden_layers, drafter.warnings));
  return {};
}

}  // namespace

const char* name_of(BlockLayout layout) { return layout == BlockLayout::in_place ? "in place" : "shifted"; }

const char* name_of(DrafterFamily family) {
  switch (family) {
    case DrafterFamily::dflash:
      return "DFlash";
    case DrafterFamily::dflash2:
      return "DFlash2";
    case DrafterFamily::dspark:
      return "DSpark";
  }
  return "unknown";
}

const char* name_of(MarkovHeadType type) {
  switch (type) {
    case MarkovHeadType::vanilla:
      return "vanilla";
    case MarkovHeadType::gated:
      return "gated";
    case MarkovHeadType::rnn:
      return "rnn";
  }
  return "unknown";
}

int32_t DrafterConfig::largest_window() const {
  int32_t largest = 0;
  for (const DrafterLayerConfig& layer : layers) {
    if (layer.window == 0) return 0;
    largest = std::max(largest, layer.window);
  }
  return largest;
}

Result<DrafterConfig> read_drafter_config(const Json& document, std::string origin,
                                          std::optional<BlockLayout> layout_override) {
  if (!document.is_object()) {
    return make_error(Code::corrupt_file, "{}: found {}, expected an object", origin, json_type_name(document));
  }
  DrafterConfig drafter;
  drafter.origin = origin;
  const ConfigReader config(document, std::move(origin));
  BLOCKDRAFT_ASSIGN(const DraftKeys keys, DraftKeys::open(config, drafter.warnings));
  BLOCKDRAFT_ASSIGN(const DrafterKind kind, read_drafter_kind(keys));
  BLOCKDRAFT_TRY(refuse_foreign_keys(keys, kind));
  drafter.architecture = kind.architecture;
  drafter.family = kind.family;
  BLOCKDRAFT_ASSIGN(drafter.layout, read_block_layout(keys, kind, layout_override, drafter.warnings));

  BLOCKDRAFT_TRY(read_transformer(keys, kind, drafter));
  BLOCKDRAFT_ASSIGN(drafter.block_size, read_block_size(keys, drafter.layout));
  BLOCKDRAFT_ASSIGN(drafter.mask_token_id, read_mask_token_id(keys, drafter.transformer.vocab_size));
  BLOCKDRAFT_TRY(read_target_layer_ids(keys, kind, drafter));
  BLOCKDRAFT_TRY(read_widths(keys, drafter));
  BLOCKDRAFT_TRY(read_scales(keys, drafter));
  if (kind.family == DrafterFamily::dflash2) {
    BLOCKDRAFT_ASSIGN(drafter.dflash2, read_dflash2_config(keys, drafter.transformer, drafter.draft_vocab_size));
  }
  if (kind.family == DrafterFamily::dspark) {
    BLOCKDRAFT_ASSIGN(drafter.dspark, read_dspark_config(keys, kind));
  }
  return drafter;
}

Result<DrafterConfig> read_drafter_config(const std::filesystem::path& folder,
                                          std::optional<BlockLayout> layout_override) {
  BLOCKDRAFT_ASSIGN(const Json document, read_config_json(folder));
  BLOCKDRAFT_ASSIGN(DrafterConfig drafter,
                    read_drafter_config(document, (folder / "config.json").string(), layout_override));
  BLOCKDRAFT_TRY(refuse_mask_embedding(folder));
  return drafter;
}

}  // namespace blockdraft
