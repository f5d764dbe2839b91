// One layer's K and V in pages.
#pragma once

#include <cstdint>

#include "base/check.h"
#include "base/host_device.h"
#include "tensor/dtype.h"

namespace blockdraft {

inline constexpr int32_t kPageSize = 16;  // positions a page

// k, v: [num_pages, num_kv_heads, kPageSize, head_dim]: a head's keys of a page are contiguous. F32 on the CPU, BF16 on
// a card.
// K is stored normed and roped. Position p of a sequence lies in page page_table[p / kPageSize], slot p % kPageSize.
struct PagedKvView {
  void* k = nullptr;
  void* v = nullptr;
  int32_t num_pages = 0;
  int32_t num_kv_heads = 0;
  int32_t head_dim = 0;
  DType dtype = DType::f32;

  float* k_f32() const {
    DCHECK(dtype == DType::f32);
    return static_cast<float*>(k);
  }
  float* v_f32() const {
    DCHECK(dtype == DType::f32);
    return static_cast<float*>(v);
  }

  // Offset of a position's vector for one head, in elements.
  BLOCKDRAFT_HOST_DEVICE int64_t offset(int32_t page, int32_t kv_head, int32_t slot) const {
    return ((static_cast<int64_t>(page) * num_kv_heads + kv_head) * kPageSize + slot) * head_dim;
  }
};

}  // namespace blockdraft
