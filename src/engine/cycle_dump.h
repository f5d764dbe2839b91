// Files with what a drafter computed in chosen cycles, for comparison with another implementation offline.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

#include "blockdraft/result.h"
#include "engine/sequence.h"
#include "tensor/recorder.h"

namespace blockdraft {

struct CycleRange {
  int64_t first = 0;
  int64_t last = 0;  // included
};

// One file a cycle, cycle-NUMBER.safetensors, and cycle-NUMBER.json beside it that says of each tensor what it is.
// Cycles are counted from 0 over all texts. One sequence is decoded at a time. Not thread-safe.
class CycleDump {
 public:
  // Makes the folder. `cycles` empty: all.  Errors: io_error, also if the folder holds a dump already.
  static Result<CycleDump> create(std::filesystem::path folder, std::vector<CycleRange> cycles);

  // Where to record what belongs to the next cycle, its context and its block; null if that cycle is not chosen.
  Recorder* recorder() { return is_chosen(next_cycle_) ? &recorder_ : nullptr; }
  // Forgets what was recorded for a text that ended without a cycle.
  void begin_text() { recorder_.clear(); }
  // To be called after each cycle. Writes it if it is chosen.  Errors: io_error.
  Status end_cycle(const Sequence& sequence);

 private:
  CycleDump(std::filesystem::path folder, std::vector<CycleRange> cycles)
      : folder_(std::move(folder)), cycles_(std::move(cycles)) {}
  bool is_chosen(int64_t cycle) const;
  Status write(const SequenceCycle& cycle, int32_t position, int32_t anchor_id) const;

  std::filesystem::path folder_;
  std::vector<CycleRange> cycles_;
  int64_t next_cycle_ = 0;
  Recorder recorder_;
};

}  // namespace blockdraft
