// What a model folder is, and whether a drafter fits a target, without generating anything. Reads configs and headers
// of weight files, not the weights.
//
//   auto report = blockdraft::inspect_pair("demo/pycode-14m", "demo/pycode-14m-dflash");
//   if (report && !report->fits()) ...
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "blockdraft/drafter_files.h"
#include "blockdraft/result.h"

namespace blockdraft {

struct ReportLine {
  std::string name;  // "layers"
  std::string value;
};

struct FolderReport {
  bool is_drafter = false;
  std::string kind;               // "Qwen3ForCausalLM"; "DFlash", "DFlash2" or "DSpark"
  std::vector<ReportLine> lines;  // family, extents, rope, taps, windows, formats, in the order to show them
  int64_t parameters = 0;         // numbers in the weight files, scales not counted
  int64_t weight_bytes = 0;
  std::vector<std::string> warnings;
};

struct PairingLine {
  std::string name;  // "hidden size", "mask id", ...
  std::string target;
  std::string drafter;
  bool fits = true;
};

struct PairingReport {
  std::vector<PairingLine> lines;
  bool fits() const;
  std::string problem() const;  // the lines that do not fit, in one sentence; empty if all fit
};

// Errors: as Engine::open for the same folder. `layout`: of a drafter's block, as in EngineOptions.
Result<FolderReport> inspect_folder(const std::filesystem::path& folder,
                                    DrafterLayout layout = DrafterLayout::as_stated);
Result<PairingReport> inspect_pair(const std::filesystem::path& target, const std::filesystem::path& drafter,
                                   DrafterLayout layout = DrafterLayout::as_stated);

}  // namespace blockdraft
