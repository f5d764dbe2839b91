// Taps that wait while their sequences do not draft: the drafter takes in many positions in one pass for little more
// than the time of one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "blockdraft/result.h"
#include "draft/draft_source.h"
#include "tensor/buffer.h"
#include "tensor/context.h"
#include "tensor/tensor_view.h"

namespace blockdraft {

class TapBacklog {
 public:
  // Positions of a sequence that may wait, beside those of one cycle: a bound on memory, and on what drafting again
  // costs first.
  static constexpr int32_t kRows = 64;

  TapBacklog() = default;  // holds nothing
  // columns: of a row of taps. device: where taps lie, null: on the CPU.  Errors: out_of_memory.
  static Result<TapBacklog> create(int32_t max_sequences, int32_t rows_of_cycle, int64_t columns, CudaDevice* device);

  bool is_open() const { return !rows_.empty(); }
  int32_t rows(int32_t slot) const { return is_open() ? rows_[static_cast<size_t>(slot)] : 0; }
  bool is_full(int32_t slot) const { return rows(slot) >= kRows; }

  // Copies the rows behind those that the slot has.
  void add(Context& context, int32_t slot, ConstTensorView taps, int32_t first_row, int32_t num_rows);
  // All that the slot has, which it then has no more; the rows stay where they are until the next add.
  //   position: the first that is not among them.
  TapRows take(int32_t slot, int32_t position);
  ConstTensorView taps() const { return taps_; }  // what take() speaks of
  void reset(int32_t slot);

  size_t size_bytes() const { return memory_.size_bytes(); }

 private:
  Buffer memory_;
  TensorView taps_;  // [max_sequences * rows_a_slot, columns]
  int32_t rows_a_slot_ = 0;
  std::vector<int32_t> rows_;  // [max_sequences] waiting
};

}  // namespace blockdraft
