// What the commands say of a drafter at work beside their results: at start, in tables, in files, and as warnings.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "blockdraft/engine.h"
#include "blockdraft/result.h"

namespace CLI {
class App;
}

namespace blockdraft {

struct DiagnosticFlags {
  bool stats = false;
  bool verbose = false;
};

struct DumpFlags {
  std::filesystem::path folder;
  std::string cycles;
};

// The flags write into `flags`, which must outlive the parsing.  stats: the help of --stats.
void add_diagnostic_flags(CLI::App& app, DiagnosticFlags& flags, const std::string& stats);
void add_dump_flags(CLI::App& app, DumpFlags& flags);

// "0-3,7": ranges, both ends included, and single numbers.  Errors: invalid_argument.
Result<std::vector<DumpOptions::Range>> parse_cycles(const std::string& list);
Result<DumpOptions> dump_options(const DumpFlags& flags);

// Where cycles were chosen that no text reached, a warning.
void warn_if_nothing_was_dumped(const DumpOptions& options, std::span<const Generation> generations);

// With --verbose: what is open, on stderr. Reads the folders' configs and headers.
Status summarize(const DiagnosticFlags& flags, const EngineOptions& options, const EngineInfo& info);

// What the engine says of the drafter, on stderr.
void log_warnings(const Engine& engine);

}  // namespace blockdraft
