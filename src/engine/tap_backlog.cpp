#include "engine/tap_backlog.h"

#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "ops/copy_rows.h"

namespace blockdraft {

Result<TapBacklog> TapBacklog::create(int32_t max_sequences, int32_t rows_of_cycle, int64_t columns,
                                      CudaDevice* device) {
  TapBacklog backlog;
  backlog.rows_a_slot_ = kRows + rows_of_cycle;
  const int64_t rows = static_cast<int64_t>(max_sequences) * backlog.rows_a_slot_;
  BLOCKDRAFT_ASSIGN(backlog.memory_,
                    allocate_for(device, static_cast<size_t>(rows * columns) * sizeof(float), "taps that wait"));
  backlog.taps_ = view_f32(backlog.memory_.f32(), Shape{rows, columns});
  backlog.rows_.resize(static_cast<size_t>(max_sequences));
  return backlog;
}

void TapBacklog::add(Context& context, int32_t slot, ConstTensorView taps, int32_t first_row, int32_t num_rows) {
  int32_t& rows = rows_[static_cast<size_t>(slot)];
  CHECK(rows + num_rows <= rows_a_slot_);
  if (taps.dim(1) > 0) {
    copy_rows(context, rows_of(taps_, slot * rows_a_slot_ + rows, num_rows), rows_of(taps, first_row, num_rows),
              nullptr);
  }
  rows += num_rows;
}

TapRows TapBacklog::take(int32_t slot, int32_t position) {
  const int32_t rows = std::exchange(rows_[static_cast<size_t>(slot)], 0);
  return {.slot = slot, .first_position = position - rows, .first_row = slot * rows_a_slot_, .num_rows = rows};
}

void TapBacklog::reset(int32_t slot) {
  if (is_open()) rows_[static_cast<size_t>(slot)] = 0;
}

}  // namespace blockdraft
