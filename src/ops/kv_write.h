// Storing K and V of new rows in their pages.
#pragma once

#include "tensor/batch_view.h"
#include "tensor/context.h"
#include "tensor/paged_kv.h"
#include "tensor/tensor_view.h"

namespace blockdraft {

// Writes row r of k and v to the page and slot of its position in its sequence's page table.
//   k, v: [rows, kv_heads * head_dim] f32, k normed and roped. Rounded to the type of the pages (BF16 on a card).
// On a card, a head's values that are not all finite are stored as 0 and its key as NaN.
// Rows of a page that lies outside the pool (a freed page of a sliding window) are a bug of the caller.
void kv_write(Context& context, const PagedKvView& kv, const BatchView& batch, ConstTensorView k, ConstTensorView v);

namespace cpu {
void kv_write(Context& context, const PagedKvView& kv, const BatchView& batch, ConstTensorView k, ConstTensorView v);
}
namespace cu {
void kv_write(Context& context, const PagedKvView& kv, const BatchView& batch, ConstTensorView k, ConstTensorView v);
}

}  // namespace blockdraft
