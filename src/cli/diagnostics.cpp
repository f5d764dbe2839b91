#include "cli/diagnostics.h"

#include <algorithm>
#include <array>
#include <string_view>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "base/error.h"
#include "base/log.h"
#include "blockdraft/inspect.h"
#include "cli/flag_checks.h"
#include "cli/output.h"
#include "cli/report.h"

namespace blockdraft {
namespace {

constexpr const char* kDiagnostics = "Diagnostics";

Result<DumpOptions::Range> parse_range(std::string_view item) {
  const size_t dash = item.find('-');
  const auto first = whole_number(item.substr(0, dash));
  const auto last = dash == std::string_view::npos ? first : whole_number(item.substr(dash + 1));
  if (first && last && *first >= 0 && *first <= *last) return DumpOptions::Range{*first, *last};
  return make_error(Code::invalid_argument,
                    "--dump-cycles: '{}' is neither a whole number of 0 or more nor a range FIRST-LAST", item);
}

// The lines of an inspected folder that tell how it will run, in one line.
Result<std::string> describe(const std::filesystem::path& folder, DrafterLayout layout = DrafterLayout::as_stated) {
  constexpr std::array<std::string_view, 4> kTold{"layers", "block", "attention", "weights"};
  BLOCKDRAFT_ASSIGN(const FolderReport report, inspect_folder(folder, {.drafter_layout = layout}));
  std::string text = fmt::format("{} {}", report.kind, folder.string());
  for (const std::string_view name : kTold) {
    const auto line = std::ranges::find(report.lines, name, &ReportLine::name);
    if (line != report.lines.end()) text += fmt::format("; {}: {}", line->name, line->value);
  }
  return text;
}

const char* name_of(WeightFormat format) {
  switch (format) {
    case WeightFormat::as_stored:
      return "as stored";
    case WeightFormat::bf16:
      return "BF16";
    case WeightFormat::fp8:
      return "FP8";
    case WeightFormat::nvfp4:
      return "NVFP4";
    case WeightFormat::int8:
      return "int8";
  }
  return "unknown";
}

}  // namespace

void add_diagnostic_flags(CLI::App& app, DiagnosticFlags& flags, const std::string& stats) {
  app.add_flag("--stats", flags.stats, stats)->group(kDiagnostics);
  app.add_flag("--verbose", flags.verbose, "Say at start what is open: models, formats, kernels, width, memory")
      ->group(kDiagnostics);
}

void add_dump_flags(CLI::App& app, DumpFlags& flags) {
  CLI::Option* folder =
      app.add_option("--dump", flags.folder, "Write what the drafter computed to files in this folder");
  folder->type_name("DIR")->check(not_empty())->needs(app.get_option("--drafter"))->group(kDiagnostics);
  app.add_option("--dump-cycles", flags.cycles,
                 "Cycles to write, counted from 0 over all prompts, such as 0-3,7; none given: all")
      ->type_name("LIST")
      ->check(not_empty())
      ->needs(folder)
      ->group(kDiagnostics);
}

Result<std::vector<DumpOptions::Range>> parse_cycles(const std::string& list) {
  std::vector<DumpOptions::Range> ranges;
  for (const std::string_view item : split_at_commas(list)) {
    BLOCKDRAFT_ASSIGN(const DumpOptions::Range range, parse_range(item));
    ranges.push_back(range);
  }
  return ranges;
}

Result<DumpOptions> dump_options(const DumpFlags& flags) {
  DumpOptions options{.folder = flags.folder};
  if (flags.cycles.empty()) return options;
  BLOCKDRAFT_ASSIGN(options.cycles, parse_cycles(flags.cycles));
  return options;
}

void warn_if_nothing_was_dumped(const DumpOptions& options, std::span<const Generation> generations) {
  if (options.folder.empty()) return;
  int64_t cycles = 0;
  for (const Generation& generation : generations) cycles += static_cast<int64_t>(generation.cycles.size());
  const bool some =
      options.cycles.empty()
          ? cycles > 0
          : std::ranges::any_of(options.cycles, [&](const DumpOptions::Range& range) { return range.first < cycles; });
  if (!some) log_warning("--dump wrote nothing: the texts took {} cycles, none of those asked for", cycles);
}

Status summarize(const DiagnosticFlags& flags, const EngineOptions& options, const EngineInfo& info) {
  if (!flags.verbose) return {};
  BLOCKDRAFT_ASSIGN(const std::string target, describe(options.target));
  std::string text = fmt::format("target   {}, in memory: {}\n", target, name_of(options.target_weights));
  if (!options.drafter.empty()) {
    BLOCKDRAFT_ASSIGN(const std::string drafter, describe(options.drafter, options.drafter_layout));
    text += fmt::format("drafter  {}, in memory: {}\n", drafter, name_of(options.drafter_weights));
    text += fmt::format(
        "width    {}{} drafts a cycle, trained for {}{}\n", info.adapts_width ? "auto, 0 to " : "", info.draft_tokens,
        info.trained_width,
        options.confidence_threshold > 0
            ? fmt::format("; verified up to the first with confidence below {:g}", options.confidence_threshold)
            : "");
  }
  text += info.device.kind == Device::Kind::cpu
              ? fmt::format("kernels  cpu, {}; threads: {}\n", info.cpu_isa, info.threads)
              : fmt::format("kernels  {}; of the CPU's part: {}; threads: {}\n", place_of(info), info.cpu_isa,
                            info.threads);
  text += fmt::format("memory   {}; sequences at once: {}, positions of each: {}\n", memory_plan(info),
                      info.max_sequences, info.max_positions);
  write_error(text);
  return {};
}

void log_warnings(const Engine& engine) {
  for (const std::string& warning : engine.warnings()) log_warning("{}", warning);
}

}  // namespace blockdraft
