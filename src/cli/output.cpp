#include "cli/output.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include <fmt/core.h>
#include <unistd.h>

#include "base/json.h"

namespace blockdraft {
namespace {

// Without destructors: stdout has failed already, and flushing it again would only fail again.
[[noreturn]] void end_without_reader(int error) {
  if (error == EPIPE) std::_Exit(kExitOk);
  write_error(fmt::format("blockdraft: stdout: {}; the output is not complete\n", std::strerror(error)));
  std::_Exit(kExitFailure);
}

// The library names its options as fields: "option max_sequences is 0".
std::string with_flag_name(const std::string& message) {
  constexpr std::string_view kOption = "option ";
  if (!message.starts_with(kOption)) return message;
  const size_t end = message.find(' ', kOption.size());
  if (end == std::string::npos) return message;
  std::string name = message.substr(kOption.size(), end - kOption.size());
  for (char& c : name) {
    if (c == '_') c = '-';
  }
  return "--" + name + message.substr(end);
}

const char* remedy(Code code) {
  switch (code) {
    case Code::not_found:
      return "; check that the folder is complete and readable";
    case Code::corrupt_file:
      return "; fetch the file again";
    case Code::mismatch:
      return "; choose a drafter trained for this target";
    case Code::limit_exceeded:
      return "; raise --max-positions or shorten the prompt";
    case Code::out_of_memory:
      return "; lower --max-positions or --max-sequences";
    case Code::invalid_argument:
    case Code::unsupported:
    case Code::io_error:
    case Code::numeric:
      return "";
  }
  return "";
}

}  // namespace

void write_out(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    end_without_reader(errno);
  }
}

void write_error(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stderr); }

void write_json(const Json& value) { write_out(value.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n"); }

void write_human(bool json, std::string_view text) {
  if (json) {
    write_error(text);
  } else {
    write_out(text);
  }
}

bool stdout_is_terminal() { return isatty(STDOUT_FILENO) == 1; }

int report_error(const Error& error) {
  write_error(fmt::format("blockdraft: {}{}\n", with_flag_name(error.message), remedy(error.code)));
  return error.code == Code::invalid_argument ? kExitUsage : kExitFailure;
}

}  // namespace blockdraft
