// Checks of flag values. A message says what was found and what to give; CLI11 puts the flag's name in front.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

namespace blockdraft {

CLI::Validator folder_check();
CLI::Validator range_check(int64_t min, int64_t max);  // whole numbers
CLI::Validator at_least(int64_t min);
CLI::Validator number_check();  // any number: the library knows the ranges
CLI::Validator not_empty();
CLI::Validator bias_check();  // ID=BIAS
CLI::Validator device_check();
CLI::Validator choice_check(std::vector<std::string> names);

std::optional<int64_t> whole_number(std::string_view text);
std::optional<float> number(std::string_view text);
std::vector<std::string_view> split_at_commas(std::string_view list);  // one item at least, perhaps an empty one

// A flag that takes one of some names.
template <class Value>
CLI::Option* add_choice(CLI::App& app, const char* flag, Value& value, const char* help,
                        const std::vector<std::pair<std::string, Value>>& choices) {
  std::vector<std::string> names;
  for (const auto& [name, choice] : choices) names.push_back(name);
  const auto set = [&value, choices](const std::string& found) {
    for (const auto& [name, choice] : choices) {
      if (name == found) value = choice;
    }
  };
  return app.add_option_function<std::string>(flag, set, help)
      ->type_name(CLI::detail::join(names, "|"))
      ->check(choice_check(names));
}

}  // namespace blockdraft
