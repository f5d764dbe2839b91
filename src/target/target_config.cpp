#include "target/target_config.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/json.h"
#include "nn/config_errors.h"

namespace blockdraft {
namespace {

// What an architecture's layers have that its config does not say.
struct Architecture {
  std::string_view name;
  bool qk_norm;
};
constexpr Architecture kArchitectures[] = {{"Qwen3ForCausalLM", true}, {"LlamaForCausalLM", false}};

Result<ConfigReader> reader_of(const Json& document, const std::string& origin) {
  if (document.is_object()) return ConfigReader(document, origin);
  return make_error(Code::corrupt_file, "{}: found {}, expected an object", origin, json_type_name(document));
}

Result<Architecture> read_architecture(const ConfigReader& config) {
  constexpr std::string_view kExpected = "a target of architecture [\"Qwen3ForCausalLM\"] or [\"LlamaForCausalLM\"]";
  BLOCKDRAFT_ASSIGN(const auto architectures, config.optional_strings("architectures"));
  if (!architectures) return config.missing("architectures", kExpected);
  for (const Architecture& known : kArchitectures) {
    if (!architectures->empty() && architectures->front() == known.name) return known;
  }
  return unsupported_value(config, config.find("architectures"), kExpected);
}

Status refuse_windows(const ConfigReader& config, int64_t num_hidden_layers) {
  BLOCKDRAFT_ASSIGN(const auto use_sliding_window, config.optional_boolean("use_sliding_window"));
  if (use_sliding_window.value_or(false)) {
    return unsupported_value(config, config.find("use_sliding_window"), "false");
  }
  BLOCKDRAFT_ASSIGN(const auto layer_types, config.optional_strings("layer_types"));
  if (!layer_types) return {};
  const ConfigValue found = config.find("layer_types");
  if (static_cast<int64_t>(layer_types->size()) != num_hidden_layers) {
    return config.wrong_value(
        found, fmt::format("one entry for each of {} layers, not {}", num_hidden_layers, layer_types->size()));
  }
  const bool all_full = std::all_of(layer_types->begin(), layer_types->end(),
                                    [](const std::string& type) { return type == "full_attention"; });
  if (!all_full) return unsupported_value(config, found, "full_attention in every layer");
  return {};
}

// Adds the ids of `eos_token_id`, an integer, a list of integers or null, that are not there yet.
Status add_eos_token_ids(const ConfigReader& config, int64_t vocab_size, std::vector<int32_t>& ids) {
  const ConfigValue found = config.find("eos_token_id");
  if (found.value == nullptr) return {};
  const IntegerRange range{0, vocab_size - 1};
  std::vector<int64_t> listed;
  if (found.value->is_array()) {
    BLOCKDRAFT_ASSIGN(listed, integers_from(config, found, range));
  } else {
    BLOCKDRAFT_ASSIGN(const int64_t id, integer_from(config, found, range));
    listed.push_back(id);
  }
  for (const int64_t id : listed) {
    const auto token = static_cast<int32_t>(id);
    if (std::find(ids.begin(), ids.end(), token) == ids.end()) ids.push_back(token);
  }
  return {};
}

Status add_generation_config(const std::filesystem::path& path, TargetConfig& target) {
  std::error_code error;
  const bool exists = std::filesystem::exists(path, error);
  if (error) return make_error(Code::io_error, "{}: {}", path.string(), error.message());
  if (!exists) return {};
  BLOCKDRAFT_ASSIGN(const Json document, read_json_file(path));
  BLOCKDRAFT_ASSIGN(const ConfigReader config, reader_of(document, path.string()));
  return add_eos_token_ids(config, target.transformer.vocab_size, target.eos_token_ids);
}

}  // namespace

Result<TargetConfig> read_target_config(const Json& document, std::string origin) {
  BLOCKDRAFT_ASSIGN(const ConfigReader config, reader_of(document, origin));
  TargetConfig target;
  BLOCKDRAFT_ASSIGN(const Architecture architecture, read_architecture(config));
  target.architecture = architecture.name;
  // A drafter may leave it out; of a target it is the longest text that there can be.
  BLOCKDRAFT_TRY(config.integer("max_position_embeddings", kExtent));
  BLOCKDRAFT_ASSIGN(target.transformer, read_transformer_config(config));
  target.transformer.qk_norm = architecture.qk_norm;
  BLOCKDRAFT_TRY(refuse_windows(config, target.transformer.num_hidden_layers));
  BLOCKDRAFT_ASSIGN(const auto tied, config.optional_boolean("tie_word_embeddings"));
  target.tie_word_embeddings = tied.value_or(false);
  BLOCKDRAFT_TRY(add_eos_token_ids(config, target.transformer.vocab_size, target.eos_token_ids));
  return target;
}

Result<TargetConfig> read_target_config(const std::filesystem::path& folder) {
  BLOCKDRAFT_ASSIGN(const Json document, read_config_json(folder));
  BLOCKDRAFT_ASSIGN(TargetConfig target, read_target_config(document, (folder / "config.json").string()));
  BLOCKDRAFT_TRY(add_generation_config(folder / "generation_config.json", target));
  return target;
}

}  // namespace blockdraft
