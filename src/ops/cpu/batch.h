// Finding one's way in a BatchView.
#pragma once

#include <algorithm>
#include <cstdint>

#include "tensor/batch_view.h"

namespace blockdraft::cpu {

// The sequence that a row belongs to.
inline int32_t sequence_of_row(const BatchView& batch, int64_t row) {
  const int32_t* ends = batch.first_row + 1;
  return static_cast<int32_t>(std::upper_bound(ends, ends + batch.num_sequences, row) - ends);
}

inline const int32_t* page_table_of(const BatchView& batch, int32_t sequence) {
  return batch.page_tables + static_cast<int64_t>(sequence) * batch.page_table_stride;
}

}  // namespace blockdraft::cpu
