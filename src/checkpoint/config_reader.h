// Typed, checked access to the keys of a config.json. Every error names the file, the key, the value found and the
// values expected.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_fwd.h"
#include "blockdraft/result.h"

namespace blockdraft {

// Reads a whole JSON file: not_found, io_error, or corrupt_file for all that parse_json refuses, an empty file, and one
// larger than 256 MiB.
Result<Json> read_json_file(const std::filesystem::path& path);

// Reads `folder`/config.json: not_found, io_error, corrupt_file, or a document that is not an object.
Result<Json> read_config_json(const std::filesystem::path& folder);

struct IntegerRange {
  int64_t min = std::numeric_limits<int64_t>::min();
  int64_t max = std::numeric_limits<int64_t>::max();
};
// Extents of models: positive, and small enough that products of two stay far from overflow.
inline constexpr IntegerRange kExtent{1, int64_t{1} << 24};

// A value found for a key, and how to name it in messages ("dflash_config.block_size").
struct ConfigValue {
  const Json* value = nullptr;
  std::string name;
};

// Looks keys up in one JSON object. null counts as absent. The JSON and the origin are borrowed and must outlive the
// reader.
class ConfigReader {
 public:
  // `prefix` is put before key names in messages: "dflash_config." for a nested object.
  ConfigReader(const Json& object, std::string origin, std::string prefix = {});
  ConfigReader(Json&& object, std::string origin, std::string prefix = {}) = delete;  // it would be gone at once

  const std::string& origin() const { return origin_; }
  bool has(std::string_view key) const { return find(key).value != nullptr; }
  ConfigValue find(std::string_view key) const;  // value is null if absent

  // Absent: nullopt. Present with another type or out of range: invalid value (corrupt_file).
  Result<std::optional<int64_t>> optional_integer(std::string_view key, IntegerRange range = {}) const;
  Result<std::optional<double>> optional_number(std::string_view key) const;  // finite
  Result<std::optional<bool>> optional_boolean(std::string_view key) const;
  Result<std::optional<std::string>> optional_string(std::string_view key) const;
  Result<std::optional<std::vector<int64_t>>> optional_integers(std::string_view key, IntegerRange range = {}) const;
  Result<std::optional<std::vector<std::string>>> optional_strings(std::string_view key) const;
  // A nested object as a reader of its own, with the key in its prefix.
  Result<std::optional<ConfigReader>> optional_object(std::string_view key) const;

  // Absent is an error too (not_found).
  Result<int64_t> integer(std::string_view key, IntegerRange range = {}) const;
  Result<double> number(std::string_view key) const;
  Result<std::string> string(std::string_view key) const;

  // "FILE: key 'dflash_config.block_size' is 0, expected an integer of at least 1"
  Error wrong_value(const ConfigValue& found, std::string_view expected) const;
  Error missing(std::string_view key, std::string_view expected) const;

 private:
  const Json* object_;
  std::string origin_;
  std::string prefix_;
};

// Applies a conversion to a value that may be absent.
template <class T, class Convert>
Result<std::optional<T>> optionally(const ConfigValue& found, Convert convert) {
  if (found.value == nullptr) return std::optional<T>();
  Result<T> value = convert(found);
  if (!value) return value.error();
  return std::optional<T>(std::move(value).value());
}

// The same conversions for a value that was found by other rules of precedence (draft keys, spec 2.1).
Result<int64_t> integer_from(const ConfigReader& reader, const ConfigValue& found, IntegerRange range = {});
Result<double> number_from(const ConfigReader& reader, const ConfigValue& found);
Result<bool> boolean_from(const ConfigReader& reader, const ConfigValue& found);
Result<std::string> string_from(const ConfigReader& reader, const ConfigValue& found);
Result<std::vector<int64_t>> integers_from(const ConfigReader& reader, const ConfigValue& found,
                                           IntegerRange range = {});
Result<std::vector<std::string>> strings_from(const ConfigReader& reader, const ConfigValue& found);

}  // namespace blockdraft
