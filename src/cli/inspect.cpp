#include "blockdraft/inspect.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/report.h"

namespace blockdraft {
namespace {

constexpr const char* kExamples = R"(Examples:
  blockdraft inspect demo/pycode-14m
  blockdraft inspect demo/pycode-14m-dflash --target demo/pycode-14m
  blockdraft inspect demo/pycode-14m-dspark --target demo/pycode-14m --max-sequences 8 --max-positions 2048

config.json and the beginning of the weight files are enough, so that you can look before a large download: 8 bytes that
say in little endian how long the header is, and the header. Tensors are checked by name, type and shape; values are not
looked at. The memory plan is for --max-sequences, --max-positions and --threads.

With --json, one object: folders (folder, is_drafter, kind, lines, groups, parameters, weight_bytes, has_tensor_data,
data_bytes, memory, warnings) and pairings (target, drafter, fits, lines, memory).
)";

struct InspectFlags {
  CommonFlags common;
  ModelFlags models;  // of these, limits and layout
  std::vector<std::string> folders;
  std::string target;
  std::string drafter;
};

struct InspectedFolder {
  std::string path;
  FolderReport report;
};

struct InspectedPair {
  std::string target;
  std::string drafter;
  PairingReport report;
};

enum class Role { any, target, drafter };

InspectOptions options_of(const InspectFlags& flags) {
  return {.threads = flags.common.threads,
          .max_sequences = flags.models.max_sequences,
          .max_positions = flags.models.max_positions,
          .drafter_layout = flags.models.drafter_layout};
}

Result<InspectedFolder> inspect_as(const InspectFlags& flags, const std::string& path, Role role, const char* flag) {
  BLOCKDRAFT_ASSIGN(FolderReport report, inspect_folder(path, options_of(flags)));
  for (const std::string& warning : report.warnings) log_warning("{}", warning);
  const Role found = report.is_drafter ? Role::drafter : Role::target;
  if (role == Role::any || role == found) return InspectedFolder{path, std::move(report)};
  return make_error(Code::invalid_argument, "{}: '{}' is a {} ({}), expected a {}", flag, path,
                    report.is_drafter ? "drafter" : "target", report.kind, report.is_drafter ? "target" : "drafter");
}

Result<std::vector<InspectedFolder>> inspect_folders(const InspectFlags& flags) {
  std::vector<InspectedFolder> folders;
  if (!flags.target.empty()) {
    BLOCKDRAFT_ASSIGN(InspectedFolder target, inspect_as(flags, flags.target, Role::target, "--target"));
    folders.push_back(std::move(target));
  }
  if (!flags.drafter.empty()) {
    BLOCKDRAFT_ASSIGN(InspectedFolder drafter, inspect_as(flags, flags.drafter, Role::drafter, "--drafter"));
    folders.push_back(std::move(drafter));
  }
  for (const std::string& path : flags.folders) {
    BLOCKDRAFT_ASSIGN(InspectedFolder folder, inspect_as(flags, path, Role::any, ""));
    folders.push_back(std::move(folder));
  }
  if (!folders.empty()) return folders;
  return make_error(Code::invalid_argument, "nothing to inspect: give a model folder");
}

// Every drafter with the target, if there is exactly one.
Result<std::vector<InspectedPair>> inspect_pairs(const InspectFlags& flags,
                                                 const std::vector<InspectedFolder>& folders) {
  const InspectedFolder* target = nullptr;
  std::vector<InspectedPair> pairs;
  for (const InspectedFolder& folder : folders) {
    if (folder.report.is_drafter) continue;
    if (target != nullptr) return pairs;
    target = &folder;
  }
  if (target == nullptr) return pairs;
  for (const InspectedFolder& folder : folders) {
    if (!folder.report.is_drafter) continue;
    BLOCKDRAFT_ASSIGN(PairingReport report, inspect_pair(target->path, folder.path, options_of(flags)));
    pairs.push_back({target->path, folder.path, std::move(report)});
  }
  return pairs;
}

std::string human_groups(const std::vector<WeightGroup>& groups) {
  std::vector<TableRow> rows = {{"", "tensors", "parameters", "bytes"}};
  for (const WeightGroup& group : groups) {
    rows.push_back({fmt::format("  {}, {}", group.name, group.format), fmt::format("{}", group.tensors),
                    fmt::format("{}", group.parameters), fmt::format("{}", group.size_bytes)});
  }
  return table(rows);
}

std::string human_memory(const MemoryPlanReport& memory) {
  return fmt::format("  memory beside the weights, {} sequence{} of {} positions, {} thread{}: {}\n",
                     memory.max_sequences, memory.max_sequences == 1 ? "" : "s", memory.max_positions, memory.threads,
                     memory.threads == 1 ? "" : "s", human_plan(memory.items));
}

// With the memory plan of a pair, those of its folders would only confuse.
std::string human_folder(const InspectedFolder& folder, bool with_memory) {
  const FolderReport& report = folder.report;
  std::string text = fmt::format("{}: {} {}{}\n", folder.path, report.is_drafter ? "drafter" : "target", report.kind,
                                 report.has_tensor_data ? "" : ", headers only");
  size_t width = 0;
  for (const ReportLine& line : report.lines) width = std::max(width, line.name.size());
  for (const ReportLine& line : report.lines) text += fmt::format("  {:<{}}  {}\n", line.name, width, line.value);
  text += human_groups(report.groups);
  return with_memory ? text + human_memory(report.memory) : text;
}

std::string human_pair(const InspectedPair& pair) {
  const bool fits = pair.report.fits();
  return fmt::format("\n{} drafting for {}: {}\n{}{}", pair.drafter, pair.target, fits ? "fits" : "does not fit",
                     pairing_table(pair.report), fits ? human_memory(pair.report.memory) : "");
}

Json json_memory(const MemoryPlanReport& memory) {
  return {{"threads", memory.threads},
          {"max_sequences", memory.max_sequences},
          {"max_positions", memory.max_positions},
          {"bytes", json_plan(memory.items)}};
}

Json json_groups(const std::vector<WeightGroup>& groups) {
  Json list = Json::array();
  for (const WeightGroup& group : groups) {
    list.push_back({{"name", group.name},
                    {"format", group.format},
                    {"tensors", group.tensors},
                    {"parameters", group.parameters},
                    {"bytes", group.size_bytes}});
  }
  return list;
}

Json json_folder(const InspectedFolder& folder) {
  Json lines = Json::array();
  for (const ReportLine& line : folder.report.lines) lines.push_back({{"name", line.name}, {"value", line.value}});
  return {{"folder", folder.path},
          {"is_drafter", folder.report.is_drafter},
          {"kind", folder.report.kind},
          {"lines", std::move(lines)},
          {"groups", json_groups(folder.report.groups)},
          {"parameters", folder.report.parameters},
          {"weight_bytes", folder.report.weight_bytes},
          {"has_tensor_data", folder.report.has_tensor_data},
          {"data_bytes", folder.report.data_bytes},
          {"memory", json_memory(folder.report.memory)},
          {"warnings", folder.report.warnings}};
}

Json json_pair(const InspectedPair& pair) {
  Json lines = Json::array();
  for (const PairingLine& line : pair.report.lines) {
    lines.push_back({{"name", line.name}, {"target", line.target}, {"drafter", line.drafter}, {"fits", line.fits}});
  }
  const bool fits = pair.report.fits();
  return {{"target", pair.target},
          {"drafter", pair.drafter},
          {"fits", fits},
          {"lines", std::move(lines)},
          {"memory", fits ? json_memory(pair.report.memory) : Json(nullptr)}};
}

void print(const InspectFlags& flags, const std::vector<InspectedFolder>& folders,
           const std::vector<InspectedPair>& pairs) {
  Json json = {{"folders", Json::array()}, {"pairings", Json::array()}};
  std::string text;
  for (const InspectedFolder& folder : folders) {
    json["folders"].push_back(json_folder(folder));
    text += human_folder(folder, pairs.empty());
  }
  for (const InspectedPair& pair : pairs) {
    json["pairings"].push_back(json_pair(pair));
    text += human_pair(pair);
  }
  if (flags.common.json) {
    write_json(json);
  } else {
    write_out(text);
  }
}

Result<int> run_inspect(const InspectFlags& flags) {
  BLOCKDRAFT_TRY(apply_on_cpu(flags.common, "inspect"));
  BLOCKDRAFT_ASSIGN(const std::vector<InspectedFolder> folders, inspect_folders(flags));
  BLOCKDRAFT_ASSIGN(const std::vector<InspectedPair> pairs, inspect_pairs(flags, folders));
  print(flags, folders, pairs);
  for (const InspectedPair& pair : pairs) {
    if (!pair.report.fits()) {
      return make_error(Code::mismatch, "{} does not fit {}: {}", pair.drafter, pair.target, pair.report.problem());
    }
  }
  return kExitOk;
}

}  // namespace

Command add_inspect(CLI::App& program) {
  auto flags = std::make_shared<InspectFlags>();
  CLI::App* app = program.add_subcommand(
      "inspect", "Say what a model folder is, and whether a drafter fits a target, without running them");
  app->add_option("FOLDER", flags->folders, "Folders of targets and drafters; one target and drafters are paired")
      ->type_name(" ");
  app->add_option("--target", flags->target, "A folder that must be a target")->type_name("DIR");
  app->add_option("--drafter", flags->drafter, "A folder that must be a drafter")->type_name("DIR");
  add_drafter_layout_flag(*app, flags->models.drafter_layout);
  add_limit_flags(*app, flags->models);
  add_common_flags(*app, flags->common);
  app->footer(kExamples);
  return {app, [flags] { return run_inspect(*flags); }};
}

}  // namespace blockdraft
