// Attention of new rows over paged keys and values.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/batch_view.h"
#include "tensor/context.h"
#include "tensor/paged_kv.h"
#include "tensor/tensor_view.h"

namespace blockdraft {

// out[r, h, :] = sum_p softmax_p(scale * q[r, h, :] . K[p, h / group, :]) V[p, h / group, :],  group = heads / kv_heads
//   q, out: [rows, heads * head_dim] f32, q normed and roped. out may be q.
//   On a card out may be BF16: the same, rounded; it must not overlap q then, and `unrounded` is needed.
// K and V of the rows of this call are in the pages already (ops/kv_write.h). Let q be the position of row r and e the
// position after the last row of its sequence in this batch. Visible are the keys p (spec 1.7 and 7.4) with
//   causal:      p <= q
//   not causal:  p < e
//   window > 0:  also |q - p| < window
// Keys are reduced in chunks of kAttentionChunk absolute positions, in an order that their positions and head_dim give
// (cpu/attention_portable.cpp, cpu/attention_kernel.h); chunk results are merged in
// order within groups of kAttentionChunksPerGroup chunks, and groups in order. So a row's bits depend only on its own
// query and visible keys (docs/architecture.md).
inline constexpr int32_t kAttentionChunk = 128;
inline constexpr int32_t kAttentionChunksPerGroup = 32;

struct AttentionArgs {
  TensorView out;
  ConstTensorView q;
  PagedKvView kv;
  BatchView batch;
  int32_t num_heads = 0;
  bool causal = true;
  int32_t window = 0;  // 0: none
  float scale = 1.0f;

  // For a card: the newest op on the stream is a qkv_finish() of the same batch, so that the batch and all keys before
  // a sequence's first row were there before it. Changes no result.
  bool early = false;
  TensorView unrounded;  // scratch of a BF16 out: f32 in the shape of q, and may be q
};
void attention(Context& context, const AttentionArgs& args);

// Scratch bytes that a call takes from the arena at most.
size_t attention_scratch_bytes(int32_t num_threads, int64_t max_rows, int32_t num_heads, int32_t head_dim);

namespace cpu {
void attention(Context& context, const AttentionArgs& args);
}
namespace cu {
// head_dim 64, 128 or 256 (ops/cuda/support.h), BF16 pages; rows of q and out begin at multiples of two elements.
// Groups are of 8 chunks there (ops/cuda/attention_plan.cuh).
void attention(Context& context, const AttentionArgs& args);
// Of a call with any number of rows.
size_t attention_scratch_bytes(const CudaDevice& device, int32_t num_kv_heads, int32_t head_dim,
                               int32_t page_table_stride);
}  // namespace cu

}  // namespace blockdraft
