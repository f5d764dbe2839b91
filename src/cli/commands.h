// The subcommands. Each file adds its flags to the program and returns what to run once they are parsed.
#pragma once

#include <functional>

#include "blockdraft/result.h"

namespace CLI {
class App;
}

namespace blockdraft {

struct Command {
  CLI::App* app = nullptr;
  std::function<Result<int>()> run;  // the exit status, or what went wrong
};

Command add_generate(CLI::App& program);
Command add_check(CLI::App& program);
Command add_bench(CLI::App& program);
Command add_inspect(CLI::App& program);
Command add_tokenize(CLI::App& program);
Command add_quantize(CLI::App& program);

}  // namespace blockdraft
