#include "head/sequence_table.h"

#include "base/error.h"

namespace blockdraft {

SequenceTable::SequenceTable(int32_t max_sequences) : slots_(static_cast<size_t>(max_sequences)) {
  free_.reserve(slots_.size());
  for (int32_t slot = max_sequences - 1; slot >= 0; --slot) free_.push_back(slot);
}

SequenceId SequenceTable::id_of(int32_t slot) const {
  return SequenceId{slots_[static_cast<size_t>(slot)].uses * static_cast<int64_t>(slots_.size()) + slot};
}

Result<SequenceId> SequenceTable::open() {
  if (free_.empty()) {
    return make_error(Code::limit_exceeded, "{} sequences are open, max_sequences is {}", slots_.size(), slots_.size());
  }
  const int32_t slot = free_.back();
  free_.pop_back();
  slots_[static_cast<size_t>(slot)].is_open = true;
  return id_of(slot);
}

Result<int32_t> SequenceTable::slot_of(SequenceId id) const {
  const auto number = static_cast<int64_t>(id);
  if (number >= 0) {
    const auto slot = static_cast<int32_t>(number % static_cast<int64_t>(slots_.size()));
    if (slots_[static_cast<size_t>(slot)].is_open && id_of(slot) == id) return slot;
  }
  return make_error(Code::invalid_argument, "sequence {} is not open, expected an id of new_sequence", number);
}

void SequenceTable::release(int32_t slot) {
  Slot& entry = slots_[static_cast<size_t>(slot)];
  entry.is_open = false;
  ++entry.uses;
  free_.push_back(slot);
}

}  // namespace blockdraft
