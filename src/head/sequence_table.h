// Which sequences of a Drafter are open, and the slot of each.
#pragma once

#include <cstdint>
#include <vector>

#include "blockdraft/drafter.h"
#include "blockdraft/result.h"

namespace blockdraft {

// Slots 0 .. max_sequences - 1. An id tells its slot and how often the slot was in use before, so that none comes
// twice.
class SequenceTable {
 public:
  explicit SequenceTable(int32_t max_sequences);

  Result<SequenceId> open();                     // limit_exceeded if no slot is free
  Result<int32_t> slot_of(SequenceId id) const;  // invalid_argument if it is not open
  void release(int32_t slot);

 private:
  struct Slot {
    int64_t uses = 0;
    bool is_open = false;
  };
  SequenceId id_of(int32_t slot) const;

  std::vector<Slot> slots_;
  std::vector<int32_t> free_;  // a stack; lowest slots first, as long as none was released
};

}  // namespace blockdraft
