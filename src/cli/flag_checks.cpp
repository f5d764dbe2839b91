#include "cli/flag_checks.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <limits>
#include <string>
#include <system_error>

#include <fmt/ranges.h>

#include "blockdraft/device.h"

namespace blockdraft {
namespace {

constexpr int64_t kMaxId = std::numeric_limits<int32_t>::max();

// All of the text, or nothing.
template <class Number>
std::optional<Number> parsed(std::string_view text) {
  Number value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

template <class Check>
CLI::Validator validator(Check check) {
  return CLI::Validator([check](std::string& value) -> std::string { return check(value); }, "", "");
}

bool is_bias(std::string_view text) {
  const size_t sign = text.find('=');
  if (sign == std::string_view::npos) return false;
  const auto id = whole_number(text.substr(0, sign));
  return id && *id >= 0 && *id <= kMaxId && number(text.substr(sign + 1));
}

}  // namespace

std::optional<int64_t> whole_number(std::string_view text) { return parsed<int64_t>(text); }
std::optional<float> number(std::string_view text) { return parsed<float>(text); }

std::vector<std::string_view> split_at_commas(std::string_view list) {
  std::vector<std::string_view> items;
  for (size_t begin = 0; begin <= list.size();) {
    const size_t end = std::min(list.find(',', begin), list.size());
    items.push_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  return items;
}

CLI::Validator folder_check() {
  return validator([](const std::string& value) -> std::string {
    std::error_code error;
    if (std::filesystem::is_directory(value, error)) return {};
    return fmt::format("there is no folder '{}'; give one that holds config.json and weights", value);
  });
}

CLI::Validator range_check(int64_t min, int64_t max) {
  return validator([min, max](const std::string& value) -> std::string {
    const auto found = whole_number(value);
    if (found && *found >= min && *found <= max) return {};
    return fmt::format("'{}' is not a whole number from {} to {}", value, min, max);
  });
}

CLI::Validator at_least(int64_t min) { return range_check(min, std::numeric_limits<int64_t>::max()); }

CLI::Validator number_check() {
  return validator([](const std::string& value) -> std::string {
    return number(value) ? std::string() : fmt::format("'{}' is not a number that float32 holds", value);
  });
}

CLI::Validator not_empty() {
  return validator([](const std::string& value) { return value.empty() ? "the text is empty" : ""; });
}

CLI::Validator bias_check() {
  return validator([](const std::string& value) -> std::string {
    if (is_bias(value)) return {};
    return fmt::format("'{}' is not ID=BIAS, a token id and a number such as 50=-2.5", value);
  });
}

CLI::Validator device_check() {
  return validator([](const std::string& value) -> std::string {
    if (device_from_name(value)) return {};
    return fmt::format("'{}' is no device, expected cpu or cuda[:N]", value);
  });
}

CLI::Validator choice_check(std::vector<std::string> names) {
  return validator([names = std::move(names)](const std::string& value) -> std::string {
    if (std::ranges::find(names, value) != names.end()) return {};
    return fmt::format("'{}' is not known, expected {}", value, fmt::join(names, ", "));
  });
}

}  // namespace blockdraft
