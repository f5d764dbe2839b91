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

// How many tokens the passes of the target gave. A cycle of full width was asked for as many drafts as the engine
// drafts; the last cycles of a text ask for less and would lower the figure of the drafter.
class AcceptanceTotals {
 public:
  explicit AcceptanceTotals(int32_t full_width);  // 0: plain decoding

  void add(const Generation& generation);

  int64_t cycles() const { return cycles_; }
  int64_t accepted() const { return accepted_; }
  int64_t drafted() const { return drafted_; }  // and verified
  // Tokens a cycle, the target's own one included; nothing without cycles.
  std::optional<double> length() const;      // over cycles of full width
  std::optional<double> length_all() const;  // over all cycles
  // Entry j: share of the cycles of full width that accepted draft j. Empty without such cycles.
  std::vector<double> by_position() const;

 private:
  int32_t full_width_;
  int64_t cycles_ = 0, produced_ = 0, drafted_ = 0, accepted_ = 0;
  int64_t full_cycles_ = 0, full_produced_ = 0;
  std::vector<int64_t> accepted_at_;  // of the cycles of full width
};

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
