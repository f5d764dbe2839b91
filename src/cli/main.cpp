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

// The command whose flags were being read when parsing stopped.
std::string command_name(const CLI::App& program) {
  const auto commands = program.get_subcommands();
  return commands.empty() ? "blockdraft" : "blockdraft " + commands.front()->get_name();
}

int end_of_parsing(const CLI::App& program, const CLI::ParseError& error) {
  if (error.get_exit_code() == 0) return program.exit(error);  // --help, --version
  std::string message = error.what();
  for (char& c : message) {
    if (c == '\n' || c == '\r') c = ' ';
  }
  write_error(fmt::format("blockdraft: {}; see '{} --help'\n", message, command_name(program)));
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
  const std::vector<Command> commands = {add_generate(program), add_check(program), add_bench(program),
                                         add_inspect(program), add_tokenize(program)};
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
