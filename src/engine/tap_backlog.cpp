#include "engine/tap_backlog.h"

#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/error.h"

namespace blockdraft {

Result<TapBacklog> TapBacklog::create(int32_t max_sequences, int32_t rows_of_cycle, int64_t columns) {
  TapBacklog backlog;
  backlog.rows_a_slot_ = kRows + rows_of_cycle;
  const int64_t rows = static_cast<int64_t>(max_sequences) * backlog.rows_a_slot_;
  BLOCKDRAFT_ASSIGN(backlog.memory_,
                    Buffer::allocate(static_cast<size_t>(rows * columns) * sizeof(float), "taps that wait"));
  backlog.taps_ = view_f32(backlog.memory_.f32(), Shape{rows, columns});
  backlog.rows_.resize(static_cast<size_t>(max_sequences));
  return backlog;
}

void TapBacklog::add(int32_t slot, ConstTensorView taps, int32_t first_row, int32_t num_rows) {
  int32_t& rows = rows_[static_cast<size_t>(slot)];
  CHECK(rows + num_rows <= rows_a_slot_);
  const size_t row_bytes = static_cast<size_t>(taps.dim(1)) * sizeof(float);
  for (int32_t row = 0; row < num_rows; ++row, ++rows) {
    if (row_bytes > 0) std::memcpy(taps_.row(slot * rows_a_slot_ + rows), taps.row(first_row + row), row_bytes);
  }
}

TapRows TapBacklog::take(int32_t slot, int32_t position) {
  const int32_t rows = std::exchange(rows_[static_cast<size_t>(slot)], 0);
  return {.slot = slot, .first_position = position - rows, .first_row = slot * rows_a_slot_, .num_rows = rows};
}

void TapBacklog::reset(int32_t slot) {
  if (is_open()) rows_[static_cast<size_t>(slot)] = 0;
}

}  // namespace blockdraft
