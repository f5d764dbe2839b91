// What a model folder is, and whether a drafter fits a target, without generating anything. Reads configs and headers
// of weight files, not the weights: config.json and the beginning of the weight files are enough (8 bytes that say how
// long the header is, and the header), so that one can look before a large download.
//
//   auto report = blockdraft::inspect_pair("demo/pycode-14m", "demo/pycode-14m-dflash");
//   if (report && !report->fits()) ...
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "blockdraft/drafter_files.h"
#include "blockdraft/engine.h"
#include "blockdraft/result.h"

namespace blockdraft {

struct ReportLine {
  std::string name;  // "layers"
  std::string value;
};

// What an engine would be opened with: as in EngineOptions.
struct InspectOptions {
  int32_t threads = 0;
  int32_t max_sequences = 1;
  int64_t max_positions = 0;  // 0: of a target as in EngineOptions, of a drafter alone as in DrafterOptions
  DrafterLayout drafter_layout = DrafterLayout::as_stated;
};

// Memory beside the weights.
struct MemoryPlanReport {
  int32_t threads = 0;
  int32_t max_sequences = 0;
  int64_t max_positions = 0;
  std::vector<MemoryPlanItem> items;

  int64_t size_bytes() const;  // of all items
};

// Weights of one part of a model that are stored alike.
struct WeightGroup {
  std::string name;        // "attention", "mlp", "norms", "fc", "convolutions", "selector", "markov head", ...
  std::string format;      // "BF16", "F8_E4M3, a scale a row", "NVFP4 (ModelOpt)"
  int64_t tensors = 0;     // without those of scales
  int64_t parameters = 0;  // as FolderReport::parameters
  int64_t size_bytes = 0;  // scales included
};

struct FolderReport {
  bool is_drafter = false;
  std::string kind;               // "Qwen3ForCausalLM"; "DFlash", "DFlash2" or "DSpark"
  std::vector<ReportLine> lines;  // family, extents, rope, taps, windows, files, in the order to show them
  std::vector<WeightGroup> groups;
  int64_t parameters = 0;    // numbers of the model: two in a byte of NVFP4, none in scales and what is not used
  int64_t weight_bytes = 0;  // of all tensors
  int64_t packed_bytes = 0;  // weights in another order for the products of the kernels chosen here
  bool has_tensor_data = true;
  int64_t data_bytes = 0;  // of tensor data that the files hold; less than weight_bytes if they are cut short
  // Of a target: for plain decoding. Of a drafter: in an engine of one's own (DrafterInfo).
  MemoryPlanReport memory;
  std::vector<std::string> warnings;
};

struct PairingLine {
  std::string name;     // "hidden size", "mask id", ...
  std::string target;   // what the target has, or allows
  std::string drafter;  // what was found in the drafter
  bool fits = true;
};

struct PairingReport {
  std::vector<PairingLine> lines;
  MemoryPlanReport memory;  // of an engine over both (EngineInfo); without items if they do not fit
  bool fits() const;
  std::string problem() const;  // the lines that do not fit, in one sentence; empty if all fit
};

// Errors: as Engine::open for the same folder and options, but for what only the tensors' values would show. Every
// tensor is looked for, and its type and shape are checked. A target needs no tokenizer here; without one its real ids
// are not known, and a drafter fits only if its vocabulary has exactly as many rows.
Result<FolderReport> inspect_folder(const std::filesystem::path& folder, const InspectOptions& options = {});
Result<PairingReport> inspect_pair(const std::filesystem::path& target, const std::filesystem::path& drafter,
                                   const InspectOptions& options = {});

}  // namespace blockdraft
