// Warnings and progress of the library. Nothing is printed unless the program asks for it: the library's logger has
// no sink until log_to_stderr is called (spdlog underneath). Thread-safe.
#pragma once

#include <string_view>

#include <fmt/core.h>

#include "blockdraft/result.h"

namespace blockdraft {

enum class LogLevel { debug, info, warning, error, off };

// From now on messages of this level and above go to stderr, one line each.
void log_to_stderr(LogLevel level);

// "debug", "info", "warning", "error" or "off".
Result<LogLevel> parse_log_level(std::string_view name);

void log_message(LogLevel level, std::string_view message);

template <class... Args>
void log_info(fmt::format_string<Args...> format, Args&&... args) {
  log_message(LogLevel::info, fmt::format(format, std::forward<Args>(args)...));
}

template <class... Args>
void log_warning(fmt::format_string<Args...> format, Args&&... args) {
  log_message(LogLevel::warning, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace blockdraft
