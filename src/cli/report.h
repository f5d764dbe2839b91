// Figures and tables that several commands print.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "blockdraft/engine.h"
#include "blockdraft/inspect.h"

namespace blockdraft {

// Draft number j of the cycles that verified one.
struct DraftAcceptance {
  int64_t verified = 0;
  int64_t reached = 0;   // of those, all drafts before it were accepted
  int64_t accepted = 0;  // it, too
};

// Cycles of full width whose anchor stood at one of these positions: a power of two to the next.
struct DepthAcceptance {
  int64_t first_position = 0;
  int64_t last_position = 0;
  int64_t cycles = 0;
  int64_t produced = 0;  // tokens
};

// How many tokens the passes of the target gave. A cycle of full width was asked for as many drafts as the engine
// drafts; the last cycles of a text ask for less and would lower the figure of the drafter.
class AcceptanceTotals {
 public:
  static constexpr int32_t kEveryWidth = -1;      // where the width adapts: every cycle counts as full
  explicit AcceptanceTotals(int32_t full_width);  // 0: plain decoding
  static int32_t full_width(const EngineInfo& info) { return info.adapts_width ? kEveryWidth : info.draft_tokens; }

  void add(const Generation& generation);

  int64_t cycles() const { return cycles_; }
  int64_t accepted() const { return accepted_; }
  int64_t drafted() const { return drafted_; }  // and verified
  // Tokens a cycle, the target's own one included; nothing without cycles.
  std::optional<double> length() const;      // over cycles of full width
  std::optional<double> length_all() const;  // over all cycles
  // One entry a draft, as far as any cycle verified some.
  const std::vector<DraftAcceptance>& by_draft() const { return by_draft_; }
  std::vector<double> by_position() const;        // accepted / verified of each
  std::vector<DepthAcceptance> by_depth() const;  // by rising position, without empty entries

 private:
  void add_drafts(const CycleRecord& cycle);
  void add_full_cycle(const CycleRecord& cycle, int64_t anchor);

  int32_t full_width_;
  int64_t cycles_ = 0, produced_ = 0, drafted_ = 0, accepted_ = 0;
  int64_t full_cycles_ = 0, full_produced_ = 0;
  std::vector<DraftAcceptance> by_draft_;
  std::vector<DepthAcceptance> by_depth_;  // entry k: positions of k bits
};

// For `--stats`: acceptance by draft and by depth, as two tables. Empty without drafts.
std::string acceptance_tables(const AcceptanceTotals& acceptance);
Json json_by_depth(const AcceptanceTotals& acceptance);

// Where it computes: "cpu, 2 threads, avx2", "cuda:0, NVIDIA H200".
std::string place_of(const EngineInfo& info);

// "weights 15.9 MB mapped, beside them 12.2 MB (target pages 10.1 MB, ...)"
std::string memory_plan(const EngineInfo& info);

// The parts of it, of an engine or of one that could be opened.
std::string human_plan(const std::vector<MemoryPlanItem>& plan);  // "12.2 MB (target pages 10.1 MB, ...)"
Json json_plan(const std::vector<MemoryPlanItem>& plan);          // bytes by name
int64_t plan_bytes(const std::vector<MemoryPlanItem>& plan);

// null for nothing.
Json json_or_null(const std::optional<double>& value);

// "2.68", "-" for nothing.
std::string decimal(const std::optional<double>& value, int places);

std::string megabytes(int64_t bytes);  // "15.9 MB", of 10^6 bytes

// Middle value, the mean of the two middle ones of an even number; 0 for none.
double median(std::vector<double> values);

// Columns padded to their widest entry; the first is aligned left, the others right. Ends with a line break.
using TableRow = std::vector<std::string>;
std::string table(const std::vector<TableRow>& rows);

std::string pairing_table(const PairingReport& report);

}  // namespace blockdraft
