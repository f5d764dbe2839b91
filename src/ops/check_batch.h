// What the ops ask of a batch and its pages.
#pragma once

#include "tensor/batch_view.h"
#include "tensor/paged_kv.h"

namespace blockdraft {

inline bool is_valid_batch(const BatchView& batch) {
  if (batch.num_rows < 0 || batch.num_sequences < 0) return false;
  if (batch.num_rows == 0) return true;
  return batch.num_sequences > 0 && batch.positions != nullptr && batch.first_row != nullptr &&
         batch.page_tables != nullptr && batch.page_table_stride > 0;
}

inline bool is_valid_kv(const PagedKvView& kv) {
  return kv.k != nullptr && kv.v != nullptr && kv.num_pages > 0 && kv.num_kv_heads > 0 && kv.head_dim > 0;
}

}  // namespace blockdraft
