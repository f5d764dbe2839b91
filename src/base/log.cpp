#include "base/log.h"

#include <memory>

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include "base/error.h"

namespace blockdraft {
namespace {

spdlog::level::level_enum to_spdlog(LogLevel level) {
  switch (level) {
    case LogLevel::debug:
      return spdlog::level::debug;
    case LogLevel::info:
      return spdlog::level::info;
    case LogLevel::warning:
      return spdlog::level::warn;
    case LogLevel::error:
      return spdlog::level::err;
    case LogLevel::off:
      return spdlog::level::off;
  }
  return spdlog::level::off;
}

spdlog::logger& logger() {
  static spdlog::logger instance = [] {
    spdlog::logger silent("blockdraft");
    silent.set_level(spdlog::level::off);
    return silent;
  }();
  return instance;
}

}  // namespace

void log_to_stderr(LogLevel level) {
  if (logger().sinks().empty()) {
    auto sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
    sink->set_pattern("%n: %l: %v");
    logger().sinks().push_back(std::move(sink));
  }
  logger().set_level(to_spdlog(level));
}

Result<LogLevel> parse_log_level(std::string_view name) {
  if (name == "debug") return LogLevel::debug;
  if (name == "info") return LogLevel::info;
  if (name == "warning") return LogLevel::warning;
  if (name == "error") return LogLevel::error;
  if (name == "off") return LogLevel::off;
  return make_error(Code::invalid_argument, "log level is '{}', expected debug, info, warning, error or off", name);
}

void log_message(LogLevel level, std::string_view message) { logger().log(to_spdlog(level), message); }

}  // namespace blockdraft
