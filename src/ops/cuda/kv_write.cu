#include "ops/cuda/kv_place.cuh"
#include "ops/cuda/launch.h"
#include "ops/cuda/overlap.cuh"
#include "ops/cuda/rows.cuh"
#include "ops/kv_write.h"
#include "tensor/codec.h"

namespace blockdraft::cu {

namespace {

constexpr int kThreads = 256;
constexpr int kMaxHeads = 256;

// A block a row.
__global__ void kv_write_kernel(PagedKvView kv, BatchView batch, const float* k, int64_t k_stride, const float* v,
                                int64_t v_stride) {
  begin_in_chain();
  const auto row = static_cast<int32_t>(blockIdx.x);
  const int32_t sequence = sequence_of_row(batch, row);
  if (sequence < 0) return;
  const KvPlace place = place_of_row(kv, batch, sequence, row);
  __shared__ bool is_broken[kMaxHeads];
  for (int head = static_cast<int>(threadIdx.x); head < kv.num_kv_heads; head += kThreads) is_broken[head] = false;
  __syncthreads();
  for (int column = static_cast<int>(threadIdx.x); column < kv.num_kv_heads * kv.head_dim; column += kThreads) {
    if (!is_finite_bf16(bf16_from_float(v[row * v_stride + column]))) is_broken[column / kv.head_dim] = true;
  }
  __syncthreads();
  auto* keys = static_cast<uint16_t*>(kv.k);
  auto* values = static_cast<uint16_t*>(kv.v);
  for (int column = static_cast<int>(threadIdx.x); column < kv.num_kv_heads * kv.head_dim; column += kThreads) {
    const int head = column / kv.head_dim;
    const int64_t at = kv.offset(place.page, head, place.slot) + column % kv.head_dim;
    keys[at] = is_broken[head] ? kBrokenKey : bf16_from_float(k[row * k_stride + column]);
    values[at] = is_broken[head] ? uint16_t{0} : bf16_from_float(v[row * v_stride + column]);
  }
}

}  // namespace

void kv_write(Context& context, const PagedKvView& kv, const BatchView& batch, ConstTensorView k, ConstTensorView v) {
  CHECK(kv.dtype == DType::bf16 && kv.num_kv_heads <= kMaxHeads);
  launch(context, "kv_write", in_chain(static_cast<unsigned>(batch.num_rows), kThreads), kv_write_kernel, kv, batch,
         k.f32(), k.row_stride, v.f32(), v.row_stride);
}

}  // namespace blockdraft::cu
