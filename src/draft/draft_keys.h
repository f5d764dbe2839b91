// Where a drafter's config keeps its draft keys, and which copy wins (spec 2.1).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "blockdraft/result.h"
#include "checkpoint/config_reader.h"

namespace blockdraft {

// Looks a draft key k up in this order: dspark_<k> at the top level, dflash_config[k], dspark_config[k], k at the top
// level; the alias dspark_noise_token_id of mask_token_id comes after its dspark_<k>. null counts as absent. Copies
// that disagree add a line to `warnings` that names both places and values. `config` and `warnings` are borrowed.
//
// The keys of the transformer are at the top level, or in transformer_layer_config where there is one (spec 2.6);
// copies beside it that disagree add a line, too.
class DraftKeys {
 public:
  // Refused: dflash_config, dspark_config or transformer_layer_config that is not an object. Keys in the
  // first two that blockdraft does not know are not used, with a warning.
  static Result<DraftKeys> open(const ConfigReader& config, std::vector<std::string>& warnings);

  // The copy that wins, named by its place; value is null if there is none.
  ConfigValue find(std::string_view key) const;

  // As the functions of ConfigReader.
  Result<std::optional<int64_t>> optional_integer(std::string_view key, IntegerRange range = {}) const;
  Result<std::optional<double>> optional_number(std::string_view key) const;
  Result<std::optional<bool>> optional_boolean(std::string_view key) const;
  Result<std::optional<std::string>> optional_string(std::string_view key) const;

  const ConfigReader& config() const { return config_; }
  const ConfigReader& transformer() const { return transformer_ ? *transformer_ : config_; }
  const std::optional<ConfigReader>& transformer_layer_config() const { return transformer_; }
  const std::optional<ConfigReader>& dflash_config() const { return dflash_config_; }
  const std::optional<ConfigReader>& dspark_config() const { return dspark_config_; }

 private:
  DraftKeys(const ConfigReader& config, std::vector<std::string>& warnings) : config_(config), warnings_(&warnings) {}

  std::vector<ConfigValue> copies(std::string_view key) const;
  void warn_of_unknown_keys(const ConfigReader& nested, const Json& object);
  void warn_of_other_copies(const ConfigReader& transformer);

  ConfigReader config_;
  std::optional<ConfigReader> dflash_config_;
  std::optional<ConfigReader> dspark_config_;
  std::optional<ConfigReader> transformer_;  // transformer_layer_config
  std::vector<std::string>* warnings_;
};

// "FILE: key 'a' is 8 but 'b' is 16; the first is used"
std::string disagreement(const ConfigReader& config, const ConfigValue& used, const ConfigValue& other);

}  // namespace blockdraft
