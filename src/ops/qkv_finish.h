// What follows the product of q, k and v: the norms of heads, the rotation, and the write to the pages.
#pragma once

#include "tensor/batch_view.h"
#include "tensor/context.h"
#include "tensor/paged_kv.h"
#include "tensor/tensor_view.h"

namespace blockdraft {

// q = rope(rms_norm(q)) in place, and the pages get K = rope(rms_norm(k)) and V = v (ops/rms_norm.h, ops/rope.h and
// ops/kv_write.h, bit for bit).
//   q: [rows, heads * head_dim] f32.  k, v: [rows, kv_heads * head_dim] f32; usually columns of one matrix. What k
//   holds afterwards is undefined.  q_norm, k_norm: [head_dim] f32, or both without data: no norm.
//   rope: [rows, head_dim], as made by rope_table().
// Rows that belong to no sequence leave no K and V on a card.
struct QkvFinishArgs {
  TensorView q;
  TensorView k;
  ConstTensorView v;
  ConstTensorView q_norm;
  ConstTensorView k_norm;
  float eps = 0.0f;
  ConstTensorView rope;
  PagedKvView kv;
  BatchView batch;
};
void qkv_finish(Context& context, const QkvFinishArgs& args);

namespace cpu {
void qkv_finish(Context& context, const QkvFinishArgs& args);
}
namespace cu {
void qkv_finish(Context& context, const QkvFinishArgs& args);
}

}  // namespace blockdraft
