#include "ops/cuda/launch.h"
#include "ops/cuda/rows.cuh"
#include "ops/kv_write.h"
#include "tensor/codec.h"

namespace blockdraft::cu {

namespace {

constexpr int kThreads = 256;

// A block a row. A position without a page is a bug of the caller: the kernel ends with an error.
__global__ void kv_write_kernel(PagedKvView kv, BatchView batch, const float* k, int64_t k_stride, const float* v,
                                int64_t v_stride) {
  const auto row = static_cast<int32_t>(blockIdx.x);
  const int32_t sequence = sequence_of_row(batch, row);
  const int32_t position = batch.positions[row];
  if (position < 0 || position / kPageSize >= batch.page_table_stride) __trap();
  const int32_t page =
      batch.page_tables[static_cast<int64_t>(sequence) * batch.page_table_stride + position / kPageSize];
  if (page < 0 || page >= kv.num_pages) __trap();
  auto* keys = static_cast<uint16_t*>(kv.k);
  auto* values = static_cast<uint16_t*>(kv.v);
  for (int column = static_cast<int>(threadIdx.x); column < kv.num_kv_heads * kv.head_dim; column += kThreads) {
    const int64_t at = kv.offset(page, column / kv.head_dim, position % kPageSize) + column % kv.head_dim;
    keys[at] = bf16_from_float(k[row * k_stride + column]);
    values[at] = bf16_from_float(v[row * v_stride + column]);
  }
}

}  // namespace

void kv_write(Context& context, const PagedKvView& kv, const BatchView& batch, ConstTensorView k, ConstTensorView v) {
  CHECK(kv.dtype == DType::bf16);
  launch(context, "kv_write", {static_cast<unsigned>(batch.num_rows), kThreads}, kv_write_kernel, kv, batch, k.f32(),
         k.row_stride, v.f32(), v.row_stride);
}

}  // namespace blockdraft::cu
