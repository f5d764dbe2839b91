#include "blockdraft/inspect.h"

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/error.h"
#include "base/json.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/report.h"

namespace blockdraft {
namespace {

constexpr const char* kExamples = R"(Examples:
  blockdraft inspect demo/pycode-14m
  blockdraft inspect demo/pycode-14m-dflash --target demo/pycode-14m
)";

struct InspectFlags {
  CommonFlags common;
  std::vector<std::string> folders;
  std::string target;
  std::string drafter;
  DrafterLayout layout = DrafterLayout::as_stated;
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

Result<InspectedFolder> inspect_as(const std::string& path, Role role, const char* flag, DrafterLayout layout) {
  BLOCKDRAFT_ASSIGN(FolderReport report, inspect_folder(path, layout));
  const Role found = report.is_drafter ? Role::drafter : Role::target;
  if (role == Role::any || role == found) return InspectedFolder{path, std::move(report)};
  return make_error(Code::invalid_argument, "{}: '{}' is a {} ({}), expected a {}", flag, path,
                    report.is_drafter ? "drafter" : "target", report.kind, report.is_drafter ? "target" : "drafter");
}

Result<std::vector<InspectedFolder>> inspect_folders(const InspectFlags& flags) {
  std::vector<InspectedFolder> folders;
  if (!flags.target.empty()) {
    BLOCKDRAFT_ASSIGN(InspectedFolder target, inspect_as(flags.target, Role::target, "--target", flags.layout));
    folders.push_back(std::move(target));
  }
  if (!flags.drafter.empty()) {
    BLOCKDRAFT_ASSIGN(InspectedFolder drafter, inspect_as(flags.drafter, Role::drafter, "--drafter", flags.layout));
    folders.push_back(std::move(drafter));
  }
  for (const std::string& path : flags.folders) {
    BLOCKDRAFT_ASSIGN(InspectedFolder folder, inspect_as(path, Role::any, "", flags.layout));
    folders.push_back(std::move(folder));
  }
  if (!folders.empty()) return folders;
  return make_error(Code::invalid_argument, "nothing to inspect: give a model folder");
}

// Every drafter with the target, if there is exactly one.
Result<std::vector<InspectedPair>> inspect_pairs(const std::vector<InspectedFolder>& folders, DrafterLayout layout) {
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
    BLOCKDRAFT_ASSIGN(PairingReport report, inspect_pair(target->path, folder.path, layout));
    pairs.push_back({target->path, folder.path, std::move(report)});
  }
  return pairs;
}

std::string human_folder(const InspectedFolder& folder) {
  const FolderReport& report = folder.report;
  std::string text = fmt::format("{}: {} {}\n", folder.path, report.is_drafter ? "drafter" : "target", report.kind);
  size_t width = 0;
  for (const ReportLine& line : report.lines) width = std::max(width, line.name.size());
  for (const ReportLine& line : report.lines) text += fmt::format("  {:<{}}  {}\n", line.name, width, line.value);
  for (const std::string& warning : report.warnings) text += fmt::format("  warning: {}\n", warning);
  return text;
}

std::string human_pair(const InspectedPair& pair) {
  return fmt::format("\n{} drafting for {}: {}\n{}", pair.drafter, pair.target,
                     pair.report.fits() ? "fits" : "does not fit", pairing_table(pair.report));
}

Json json_folder(const InspectedFolder& folder) {
  Json lines = Json::array();
  for (const ReportLine& line : folder.report.lines) lines.push_back({{"name", line.name}, {"value", line.value}});
  return {{"folder", folder.path},
          {"is_drafter", folder.report.is_drafter},
          {"kind", folder.report.kind},
          {"lines", std::move(lines)},
          {"parameters", folder.report.parameters},
          {"weight_bytes", folder.report.weight_bytes},
          {"warnings", folder.report.warnings}};
}

Json json_pair(const InspectedPair& pair) {
  Json lines = Json::array();
  for (const PairingLine& line : pair.report.lines) {
    lines.push_back({{"name", line.name}, {"target", line.target}, {"drafter", line.drafter}, {"fits", line.fits}});
  }
  return {
      {"target", pair.target}, {"drafter", pair.drafter}, {"fits", pair.report.fits()}, {"lines", std::move(lines)}};
}

void print(const InspectFlags& flags, const std::vector<InspectedFolder>& folders,
           const std::vector<InspectedPair>& pairs) {
  Json json = {{"folders", Json::array()}, {"pairings", Json::array()}};
  std::string text;
  for (const InspectedFolder& folder : folders) {
    json["folders"].push_back(json_folder(folder));
    text += human_folder(folder);
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
  BLOCKDRAFT_TRY(apply(flags.common));
  BLOCKDRAFT_ASSIGN(const std::vector<InspectedFolder> folders, inspect_folders(flags));
  BLOCKDRAFT_ASSIGN(const std::vector<InspectedPair> pairs, inspect_pairs(folders, flags.layout));
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
  add_drafter_layout_flag(*app, flags->layout);
  add_common_flags(*app, flags->common);
  app->footer(kExamples);
  return {app, [flags] { return run_inspect(*flags); }};
}

}  // namespace blockdraft
