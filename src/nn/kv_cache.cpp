#include "nn/kv_cache.h"

#include <utility>

#include "base/check.h"
#include "base/error.h"

namespace blockdraft {
namespace {

int32_t pages_for(int64_t positions) { return static_cast<int32_t>((positions + kPageSize - 1) / kPageSize); }

// Elements of K (or V) of one layer.
int64_t layer_elements(const KvCacheShape& shape, int32_t num_pages) {
  return static_cast<int64_t>(num_pages) * shape.num_kv_heads * kPageSize * shape.head_dim;
}

int32_t total_pages(const KvCacheShape& shape) { return KvCache::pages_per_sequence(shape) * shape.max_sequences; }

}  // namespace

int32_t KvCache::pages_per_sequence(const KvCacheShape& shape) {
  // A span that need not begin at a page border touches one page more.
  const bool whole = shape.positions_held >= shape.max_positions;
  return pages_for(whole ? shape.max_positions : shape.positions_held) + (whole ? 0 : 1);
}

size_t KvCache::size_bytes(const KvCacheShape& shape) {
  return static_cast<size_t>(layer_elements(shape, total_pages(shape)) * 2 * shape.num_layers) * size_of(shape.dtype);
}

DType KvCache::dtype_on(const CudaDevice* device) { return device == nullptr ? DType::f32 : DType::bf16; }

Result<KvCache> KvCache::create(const KvCacheShape& shape, const char* what, CudaDevice* device) {
  BLOCKDRAFT_ASSIGN(Buffer memory, allocate_for(device, size_bytes(shape), what));
  return KvCache(shape, std::move(memory));
}

KvCache::KvCache(const KvCacheShape& shape, Buffer memory)
    : shape_(shape),
      memory_(std::move(memory)),
      pool_(total_pages(shape)),
      stride_(pages_for(shape.max_positions)),
      entries_(static_cast<size_t>(stride_) * static_cast<size_t>(shape.max_sequences), kNoPage) {
  for (int32_t slot = 0; slot < shape.max_sequences; ++slot) {
    tables_.emplace_back(
        std::span(entries_).subspan(static_cast<size_t>(slot * stride_), static_cast<size_t>(stride_)));
  }
}

PagedKvView KvCache::layer(int32_t index) {
  const int64_t bytes = layer_elements(shape_, pool_.num_pages()) * static_cast<int64_t>(size_of(shape_.dtype));
  std::byte* k = static_cast<std::byte*>(memory_.data()) + 2 * bytes * index;
  return {k, k + bytes, pool_.num_pages(), shape_.num_kv_heads, shape_.head_dim, shape_.dtype};
}

void KvCache::reserve(int32_t slot, int64_t positions) {
  const bool reserved = tables_[static_cast<size_t>(slot)].reserve(pool_, positions);
  CHECK(reserved);
}

void KvCache::truncate(int32_t slot, int64_t positions) {
  tables_[static_cast<size_t>(slot)].truncate(pool_, positions);
}

void KvCache::free_below(int32_t slot, int64_t position) {
  tables_[static_cast<size_t>(slot)].free_below(pool_, position);
}

}  // namespace blockdraft
