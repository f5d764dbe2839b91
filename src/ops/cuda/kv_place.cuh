// Where K and V of a row go, and what attention must not meet there.
#pragma once

#include <cstdint>

#include "tensor/batch_view.h"
#include "tensor/paged_kv.h"

namespace blockdraft::cu {

struct KvPlace {
  int32_t page;
  int32_t slot;
};

// A position without a page is a bug of the caller: the kernel ends with an error.
__device__ inline KvPlace place_of_row(const PagedKvView& kv, const BatchView& batch, int32_t sequence, int32_t row) {
  const int32_t position = batch.positions[row];
  if (position < 0 || position / kPageSize >= batch.page_table_stride) __trap();
  const int32_t page =
      batch.page_tables[static_cast<int64_t>(sequence) * batch.page_table_stride + position / kPageSize];
  if (page < 0 || page >= kv.num_pages) __trap();
  return {page, position % kPageSize};
}

// Attention multiplies the values of a whole chunk of keys, those that a query does not see by 0, which a number that
// is none survives. So values of a head that are not all finite are stored as 0 with a key of NaN: queries that see the
// key get NaN from its score, and the others nothing.
inline constexpr uint16_t kBrokenKey = 0x7fc0;
__device__ inline bool is_finite_bf16(uint16_t bits) { return (bits & 0x7f80) != 0x7f80; }

}  // namespace blockdraft::cu
