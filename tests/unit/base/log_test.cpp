#include "base/log.h"

#include <gtest/gtest.h>

#include "support/expect_error.h"

namespace blockdraft {
namespace {

// What `action` makes the program write to stderr.
template <class Action>
std::string stderr_of(Action action) {
  ::testing::internal::CaptureStderr();
  action();
  return ::testing::internal::GetCapturedStderr();
}

// One test, for the logger is one for the process and its silence comes first.
TEST(Log, IsSilentUntilAskedAndObeysTheLevel) {
  EXPECT_EQ(stderr_of([] {
              log_message(LogLevel::error, "nobody asked");
              log_warning("nor {}", "here");
            }),
            "");

  log_to_stderr(LogLevel::warning);
  EXPECT_EQ(stderr_of([] {
              log_info("too low");
              log_warning("block size {}", 16);
              log_message(LogLevel::error, "braces {} stay as they are");
            }),
            "blockdraft: warning: block size 16\nblockdraft: error: braces {} stay as they are\n");

  log_to_stderr(LogLevel::info);  // again: still one line each
  EXPECT_EQ(stderr_of([] { log_info("once"); }), "blockdraft: info: once\n");

  log_to_stderr(LogLevel::off);
  EXPECT_EQ(stderr_of([] { log_message(LogLevel::error, "off is off"); }), "");
}

TEST(Log, ReadsLevelNames) {
  EXPECT_EQ(parse_log_level("debug").value(), LogLevel::debug);
  EXPECT_EQ(parse_log_level("info").value(), LogLevel::info);
  EXPECT_EQ(parse_log_level("warning").value(), LogLevel::warning);
  EXPECT_EQ(parse_log_level("error").value(), LogLevel::error);
  EXPECT_EQ(parse_log_level("off").value(), LogLevel::off);
  for (const char* name : {"", "warn", "INFO", "info "}) {
    expect_error(parse_log_level(name), Code::invalid_argument,
                 {"log level", "expected debug, info, warning, error or off"});
  }
}

}  // namespace
}  // namespace blockdraft
