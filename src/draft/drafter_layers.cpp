#include "draft/drafter_layers.h"

#include <limits>
#include <optional>
#include <string_view>

#include "base/error.h"
#include "base/json.h"
#include "nn/config_errors.h"

namespace blockdraft {
namespace {

constexpr IntegerRange kWindow{1, std::numeric_limits<int32_t>::max()};

Result<LayerType> parse_layer_type(const ConfigReader& config, const ConfigValue& list, size_t layer) {
  const ConfigValue found{&(*list.value)[layer], fmt::format("{}[{}]", list.name, layer)};
  BLOCKDRAFT_ASSIGN(const std::string name, string_from(config, found));
  if (name == "full_attention") return LayerType::full_attention;
  if (name == "sliding_attention") return LayerType::sliding_attention;
  return unsupported_value(config, found, "\"full_attention\" or \"sliding_attention\"");
}

Result<std::vector<LayerType>> read_layer_types(const ConfigReader& config, const DrafterKind& kind,
                                                int64_t num_hidden_layers) {
  const ConfigValue list = config.find("layer_types");
  if (!list.value->is_array()) return config.wrong_value(list, "a list of strings");
  const size_t count = list.value->size();
  if (count != static_cast<size_t>(num_hidden_layers)) {
    return config.wrong_value(
        list, fmt::format("one entry for each of num_hidden_layers {}, not {}", num_hidden_layers, count));
  }
  std::vector<LayerType> types;
  for (size_t layer = 0; layer < count; ++layer) {
    BLOCKDRAFT_ASSIGN(const LayerType type, parse_layer_type(config, list, layer));
    if (kind.format == DrafterFormat::deepspec && type != LayerType::full_attention) {
      const ConfigValue found{&(*list.value)[layer], fmt::format("{}[{}]", list.name, layer)};
      return unsupported_value(config, found,
                               "\"full_attention\", the only type with architecture " + kind.architecture);
    }
    types.push_back(type);
  }
  return types;
}

// What the keys say about causality; each is absent if its key is.
struct CausalityKeys {
  std::optional<bool> all_layers;      // is_causal, or causal in dflash_config
  std::optional<bool> sliding_layers;  // not sliding_window_non_causal
};

// Readers disagree whether these keys count in other places, so there they are refused.
Status refuse_misplaced(const DraftKeys& keys) {
  for (const std::optional<ConfigReader>& nested :
       {keys.dflash_config(), keys.dspark_config(), keys.transformer_layer_config()}) {
    if (nested && nested->has("is_causal")) {
      return nested->wrong_value(nested->find("is_causal"), "that key at the top level");
    }
  }
  if (keys.config().has("causal")) {
    return keys.config().wrong_value(keys.config().find("causal"), "that key in dflash_config, or is_causal");
  }
  if (keys.dspark_config() && keys.dspark_config()->has("causal")) {
    return keys.dspark_config()->wrong_value(keys.dspark_config()->find("causal"), "that key in dflash_config");
  }
  return {};
}

Result<CausalityKeys> read_causality(const DraftKeys& keys, const DrafterKind& kind,
                                     std::vector<std::string>& warnings) {
  BLOCKDRAFT_TRY(refuse_misplaced(keys));
  CausalityKeys causality;
  BLOCKDRAFT_ASSIGN(causality.all_layers, keys.config().optional_boolean("is_causal"));
  if (keys.dflash_config()) {
    BLOCKDRAFT_ASSIGN(const auto causal, keys.dflash_config()->optional_boolean("causal"));
    if (causal && causality.all_layers && *causal != *causality.all_layers) {
      warnings.push_back(
          disagreement(keys.config(), keys.config().find("is_causal"), keys.dflash_config()->find("causal")));
    }
    if (!causality.all_layers) causality.all_layers = causal;
  }
  if (kind.format == DrafterFormat::muse && !causality.all_layers) causality.all_layers = false;  // spec 2.7
  BLOCKDRAFT_ASSIGN(const auto non_causal, keys.optional_boolean("sliding_window_non_causal"));
  if (non_causal) {
    causality.sliding_layers = !*non_causal;
  } else if (kind.format == DrafterFormat::speculators && kind.family == DrafterFamily::dflash2) {
    causality.sliding_layers = false;  // that format's default for this family (spec 2.2)
  }
  return causality;
}

// The other way to say that layers slide: use_swa, for all layers at once, where there are no layer_types (spec 2.2).
Result<bool> all_layers_slide(const DraftKeys& keys, std::vector<std::string>& warnings) {
  BLOCKDRAFT_ASSIGN(const auto use_swa, keys.optional_boolean("use_swa"));
  const ConfigReader& config = keys.transformer();
  if (use_swa.value_or(false) && config.has("layer_types")) {
    warnings.push_back(disagreement(config, config.find("layer_types"), keys.find("use_swa")));
    return false;
  }
  return use_swa.value_or(false);
}

// The window of sliding layers, 0 where it is switched off.
Result<int32_t> read_window(const DraftKeys& keys, bool by_use_swa, std::vector<std::string>& warnings) {
  const ConfigReader& config = keys.transformer();
  BLOCKDRAFT_ASSIGN(const auto use_sliding_window, config.optional_boolean("use_sliding_window"));
  const bool switched_off = use_sliding_window.has_value() && !*use_sliding_window;
  if (!by_use_swa) {
    if (switched_off) return 0;
    BLOCKDRAFT_ASSIGN(const int64_t window, config.integer("sliding_window", kWindow));
    return static_cast<int32_t>(window);
  }
  const ConfigValue use_swa = keys.find("use_swa");
  if (switched_off) {
    return config.wrong_value(use_swa, "false, as use_sliding_window is");
  }
  const ConfigValue size = keys.find("swa_window_size");
  if (size.value == nullptr)
    return keys.config().missing("swa_window_size", fmt::format("a window, as '{}' is true", use_swa.name));
  const ConfigValue other = config.find("sliding_window");
  if (other.value != nullptr && *other.value != *size.value) warnings.push_back(disagreement(config, size, other));
  BLOCKDRAFT_ASSIGN(const int64_t window, integer_from(config, size, kWindow));
  return static_cast<int32_t>(window);
}

// A window that no layer uses: some readers would slide here.
Status warn_of_unused_window(const ConfigReader& config, std::vector<std::string>& warnings) {
  BLOCKDRAFT_ASSIGN(const auto use_sliding_window, config.optional_boolean("use_sliding_window"));
  if (use_sliding_window.value_or(false) && config.has("sliding_window") && !config.has("layer_types")) {
    warnings.push_back(
        fmt::format("{}: use_sliding_window is true but there are no layer_types; all layers attend "
                    "fully",
                    config.origin()));
  }
  return {};
}

}  // namespace

Result<std::vector<DrafterLayerConfig>> read_drafter_layers(const DraftKeys& keys, const DrafterKind& kind,
                                                            int64_t num_hidden_layers,
                                                            std::vector<std::string>& warnings) {
  const ConfigReader& config = keys.transformer();
  BLOCKDRAFT_ASSIGN(const bool by_use_swa, all_layers_slide(keys, warnings));
  std::vector<LayerType> types(static_cast<size_t>(num_hidden_layers),
                               by_use_swa ? LayerType::sliding_attention : LayerType::full_attention);
  if (config.has("layer_types")) {
    BLOCKDRAFT_ASSIGN(types, read_layer_types(config, kind, num_hidden_layers));
  }
  BLOCKDRAFT_ASSIGN(const CausalityKeys causality, read_causality(keys, kind, warnings));

  std::optional<int32_t> window;  // read once some layer slides
  std::vector<DrafterLayerConfig> layers;
  for (const LayerType type : types) {
    DrafterLayerConfig layer;
    layer.type = type;
    if (type == LayerType::sliding_attention) {
      if (!window) {
        BLOCKDRAFT_ASSIGN(window, read_window(keys, by_use_swa, warnings));
      }
      layer.window = *window;
      layer.causal = causality.sliding_layers.value_or(!by_use_swa);
    }
    layer.causal = causality.all_layers.value_or(layer.causal);
    layers.push_back(layer);
  }
  if (!window) BLOCKDRAFT_TRY(warn_of_unused_window(config, warnings));
  return layers;
}

}  // namespace blockdraft
