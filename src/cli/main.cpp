// blockdraft: the command line. Parses the flags and runs one of the commands.
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "cli/commands.h"
#include "cli/output.h"

namespace blockdraft {
namespace {

constexpr const char* kFooter =
    "Exit status: 0 success; 1 failure (a mismatch, a model that does not load); 2 a mistake in the command line.\n"
    "'blockdraft COMMAND --help' explains a command with examples.\n";

std::string one_line(std::string text) {
  for (char& c : text) {
    if (c == '\n' || c == '\r') c = ' ';
  }
  return text;
}

// The command whose flags were being read when parsing stopped, or the program.
const CLI::App& app_of(const CLI::App& program) {
  const auto commands = program.get_subcommands();
  return commands.empty() ? program : *commands.front();
}

// A misspelled flag also makes a required one missing: the misspelled one is what helps.
std::string problem_of(const CLI::App& app, const CLI::ParseError& error) {
  const std::vector<std::string> unknown = app.remaining();
  if (!unknown.empty() && error.get_exit_code() == static_cast<int>(CLI::ExitCodes::RequiredError)) {
    return fmt::format("'{}' was not expected", unknown.front());
  }
  return error.what();
}

int end_of_parsing(const CLI::App& program, const CLI::ParseError& error) {
  if (error.get_exit_code() == 0) return program.exit(error);  // --help, --version
  const CLI::App& app = app_of(program);
  const std::string name = &app == &program ? "" : " " + app.get_name();
  write_error(fmt::format("blockdraft: {}; see 'blockdraft{} --help'\n", one_line(problem_of(app, error)), name));
  return kExitUsage;
}

int run(const std::vector<Command>& commands) {
  for (const Command& command : commands) {
    if (!command.app->parsed()) continue;
    const Result<int> status = command.run();
    return status ? *status : report_error(status.error());
  }
  return kExitUsage;
}

int run_program(int argc, char** argv) {
  CLI::App program(
      "Lossless speculative decoding: the text of a large language model, drafted in blocks by a small one.",
      "blockdraft");
  program.set_version_flag("--version", "blockdraft " BLOCKDRAFT_VERSION);
  program.require_subcommand(1);
  program.footer(kFooter);
  const std::vector<Command> commands = {add_generate(program), add_check(program),    add_bench(program),
                                         add_inspect(program),  add_tokenize(program), add_quantize(program)};
  try {
    program.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return end_of_parsing(program, error);
  }
  return run(commands);
}

}  // namespace
}  // namespace blockdraft

int main(int argc, char** argv) { return blockdraft::run_program(argc, argv); }
