#include "checkpoint/config_reader.h"

#include <cmath>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "base/json.h"
#include "base/mapped_file.h"

namespace blockdraft {
namespace {

// No config, index or tokenizer comes near; it keeps the parsed document, several times larger, within memory.
constexpr size_t kMaxJsonFileBytes = 256 << 20;

std::string describe_range(const char* noun, IntegerRange range) {
  constexpr IntegerRange kAny;
  const bool lower = range.min != kAny.min;
  const bool upper = range.max != kAny.max;
  if (lower && upper) return fmt::format("{} from {} to {}", noun, range.min, range.max);
  if (lower) return fmt::format("{} of at least {}", noun, range.min);
  if (upper) return fmt::format("{} of at most {}", noun, range.max);
  return noun;
}

// Integers only: 8.0 is a number, true is a boolean. Above int64 there is no integer either.
std::optional<int64_t> as_integer(const Json& value, IntegerRange range) {
  if (!value.is_number_integer()) return std::nullopt;
  constexpr auto kMax = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  if (value.is_number_unsigned() && value.get<uint64_t>() > kMax) return std::nullopt;
  const auto integer = value.get<int64_t>();
  if (integer < range.min || integer > range.max) return std::nullopt;
  return integer;
}

ConfigValue element(const ConfigValue& list, size_t index) {
  return {&(*list.value)[index], fmt::format("{}[{}]", list.name, index)};
}

}  // namespace

Result<Json> read_json_file(const std::filesystem::path& path) {
  BLOCKDRAFT_ASSIGN(const MappedFile file, MappedFile::open(path));
  const std::span<const std::byte> bytes = file.bytes();
  if (bytes.size() > kMaxJsonFileBytes) {
    return make_error(Code::corrupt_file, "{}: the file has {} bytes, expected a JSON file of at most {}",
                      path.string(), bytes.size(), kMaxJsonFileBytes);
  }
  return parse_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path.string());
}

Result<Json> read_config_json(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "config.json";
  BLOCKDRAFT_ASSIGN(Json config, read_json_file(path));
  if (!config.is_object()) {
    return make_error(Code::corrupt_file, "{}: found {}, expected an object", path.string(), json_type_name(config));
  }
  return config;
}

ConfigReader::ConfigReader(const Json& object, std::string origin, std::string prefix)
    : object_(&object), origin_(std::move(origin)), prefix_(std::move(prefix)) {
  CHECK(object.is_object());
}

ConfigValue ConfigReader::find(std::string_view key) const {
  ConfigValue found{nullptr, fmt::format("{}{}", prefix_, key)};
  const auto entry = object_->find(key);
  if (entry != object_->end() && !entry->is_null()) found.value = &*entry;
  return found;
}

Result<std::optional<int64_t>> ConfigReader::optional_integer(std::string_view key, IntegerRange range) const {
  return optionally<int64_t>(find(key), [&](const ConfigValue& found) { return integer_from(*this, found, range); });
}

Result<std::optional<double>> ConfigReader::optional_number(std::string_view key) const {
  return optionally<double>(find(key), [&](const ConfigValue& found) { return number_from(*this, found); });
}

Result<std::optional<bool>> ConfigReader::optional_boolean(std::string_view key) const {
  return optionally<bool>(find(key), [&](const ConfigValue& found) { return boolean_from(*this, found); });
}

Result<std::optional<std::string>> ConfigReader::optional_string(std::string_view key) const {
  return optionally<std::string>(find(key), [&](const ConfigValue& found) { return string_from(*this, found); });
}

Result<std::optional<std::vector<int64_t>>> ConfigReader::optional_integers(std::string_view key,
                                                                            IntegerRange range) const {
  return optionally<std::vector<int64_t>>(find(key),
                                          [&](const ConfigValue& found) { return integers_from(*this, found, range); });
}

Result<std::optional<std::vector<std::string>>> ConfigReader::optional_strings(std::string_view key) const {
  return optionally<std::vector<std::string>>(find(key),
                                              [&](const ConfigValue& found) { return strings_from(*this, found); });
}

Result<std::optional<ConfigReader>> ConfigReader::optional_object(std::string_view key) const {
  const ConfigValue found = find(key);
  if (found.value == nullptr) return std::optional<ConfigReader>();
  if (!found.value->is_object()) return wrong_value(found, "an object");
  return std::optional<ConfigReader>(ConfigReader(*found.value, origin_, found.name + "."));
}

Result<int64_t> ConfigReader::integer(std::string_view key, IntegerRange range) const {
  const ConfigValue found = find(key);
  if (found.value == nullptr) return missing(key, describe_range("an integer", range));
  return integer_from(*this, found, range);
}

Result<double> ConfigReader::number(std::string_view key) const {
  const ConfigValue found = find(key);
  if (found.value == nullptr) return missing(key, "a number");
  return number_from(*this, found);
}

Result<std::string> ConfigReader::string(std::string_view key) const {
  const ConfigValue found = find(key);
  if (found.value == nullptr) return missing(key, "a string");
  return string_from(*this, found);
}

Error ConfigReader::wrong_value(const ConfigValue& found, std::string_view expected) const {
  CHECK(found.value != nullptr);
  return make_error(Code::corrupt_file, "{}: key '{}' is {}, expected {}", origin_, printable(found.name),
                    json_excerpt(*found.value), expected);
}

Error ConfigReader::missing(std::string_view key, std::string_view expected) const {
  return make_error(Code::not_found, "{}: key '{}' is missing, expected {}", origin_,
                    printable(fmt::format("{}{}", prefix_, key)), expected);
}

Result<int64_t> integer_from(const ConfigReader& reader, const ConfigValue& found, IntegerRange range) {
  CHECK(found.value != nullptr);
  if (const std::optional<int64_t> integer = as_integer(*found.value, range)) return *integer;
  return reader.wrong_value(found, describe_range("an integer", range));
}

Result<double> number_from(const ConfigReader& reader, const ConfigValue& found) {
  CHECK(found.value != nullptr);
  if (!found.value->is_number()) return reader.wrong_value(found, "a number");
  const auto number = found.value->get<double>();
  if (!std::isfinite(number)) return reader.wrong_value(found, "a finite number");
  return number;
}

Result<bool> boolean_from(const ConfigReader& reader, const ConfigValue& found) {
  CHECK(found.value != nullptr);
  if (!found.value->is_boolean()) return reader.wrong_value(found, "true or false");
  return found.value->get<bool>();
}

Result<std::string> string_from(const ConfigReader& reader, const ConfigValue& found) {
  CHECK(found.value != nullptr);
  if (!found.value->is_string()) return reader.wrong_value(found, "a string");
  return found.value->get<std::string>();
}

Result<std::vector<int64_t>> integers_from(const ConfigReader& reader, const ConfigValue& found, IntegerRange range) {
  CHECK(found.value != nullptr);
  if (!found.value->is_array()) return reader.wrong_value(found, "a list of integers");
  std::vector<int64_t> integers;
  integers.reserve(found.value->size());
  for (size_t i = 0; i < found.value->size(); ++i) {
    BLOCKDRAFT_ASSIGN(const int64_t integer, integer_from(reader, element(found, i), range));
    integers.push_back(integer);
  }
  return integers;
}

Result<std::vector<std::string>> strings_from(const ConfigReader& reader, const ConfigValue& found) {
  CHECK(found.value != nullptr);
  if (!found.value->is_array()) return reader.wrong_value(found, "a list of strings");
  std::vector<std::string> strings;
  strings.reserve(found.value->size());
  for (size_t i = 0; i < found.value->size(); ++i) {
    BLOCKDRAFT_ASSIGN(std::string text, string_from(reader, element(found, i)));
    strings.push_back(std::move(text));
  }
  return strings;
}

}  // namespace blockdraft
