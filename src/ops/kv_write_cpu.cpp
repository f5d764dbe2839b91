#include <algorithm>

#include "ops/cpu/batch.h"
#include "ops/cpu/parallel.h"
#include "ops/kv_write.h"

namespace blockdraft::cpu {

void kv_write(Context& context, const PagedKvView& kv, const BatchView& batch, ConstTensorView k, ConstTensorView v) {
  CHECK(kv.dtype == DType::f32);
  for_each_row(context, batch.num_rows, k.dim(1), [&](int64_t r) {
    const int32_t position = batch.positions[r];
    CHECK(position >= 0 && position / kPageSize < batch.page_table_stride);
    const int32_t page = page_table_of(batch, sequence_of_row(batch, r))[position / kPageSize];
    CHECK(page >= 0 && page < kv.num_pages);
    for (int32_t head = 0; head < kv.num_kv_heads; ++head) {
      const int64_t offset = kv.offset(page, head, position % kPageSize);
      const int64_t column = static_cast<int64_t>(head) * kv.head_dim;
      std::copy_n(k.row(r) + column, kv.head_dim, kv.k_f32() + offset);
      std::copy_n(v.row(r) + column, kv.head_dim, kv.v_f32() + offset);
    }
  });
}

}  // namespace blockdraft::cpu
