// Paged K/V of a stack of layers, for a fixed number of sequences: memory, page pool and page tables together.
#pragma once

#include <cstdint>
#include <vector>

#include "blockdraft/result.h"
#include "kv/page_pool.h"
#include "tensor/buffer.h"
#include "tensor/paged_kv.h"

namespace blockdraft {

class CudaDevice;

struct KvCacheShape {
  int32_t num_layers = 0;
  int32_t num_kv_heads = 0;
  int32_t head_dim = 0;
  int32_t max_sequences = 0;
  int64_t max_positions = 0;   // highest position + 1 of any sequence
  int64_t positions_held = 0;  // held at once by a sequence: max_positions, less if windows let pages go
  DType dtype = DType::f32;    // of K and V: what the ops of the device want (tensor/paged_kv.h)
};

// Sequences are slots 0 .. max_sequences - 1. All layers share the page tables. The pool is large enough for every slot
// to hold positions_held positions, so reserving within these limits cannot fail. Not thread-safe.
class KvCache {
 public:
  static DType dtype_on(const CudaDevice* device);  // of pages that its ops read; null: the CPU
  static int32_t pages_per_sequence(const KvCacheShape& shape);
  static size_t size_bytes(const KvCacheShape& shape);
  // `what` names the cache in an out-of-memory error.
  // On a card if one is given; it is borrowed.
  static Result<KvCache> create(const KvCacheShape& shape, const char* what, CudaDevice* device = nullptr);

  size_t size_bytes() const { return memory_.size_bytes(); }
  DType dtype() const { return shape_.dtype; }
  PagedKvView layer(int32_t index);
  int32_t page_table_stride() const { return stride_; }
  const int32_t* page_table(int32_t slot) const { return &entries_[static_cast<size_t>(slot) * stride_]; }

  void reserve(int32_t slot, int64_t positions);  // room for positions 0 .. positions - 1
  void truncate(int32_t slot, int64_t positions);
  void free_below(int32_t slot, int64_t position);
  int64_t first_position_held(int32_t slot) const { return tables_[static_cast<size_t>(slot)].first_position_held(); }
  int32_t num_free_pages() const { return pool_.num_free(); }
  int32_t num_pages() const { return pool_.num_pages(); }

 private:
  KvCache(const KvCacheShape& shape, Buffer memory);

  KvCacheShape shape_;
  Buffer memory_;  // [num_layers][k, v][num_pages, num_kv_heads, kPageSize, head_dim] of shape_.dtype
  PagePool pool_;
  int32_t stride_;
  std::vector<int32_t> entries_;   // [max_sequences, stride_]
  std::vector<PageTable> tables_;  // [max_sequences], writing into entries_
};

}  // namespace blockdraft
