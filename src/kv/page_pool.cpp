#include "kv/page_pool.h"

#include <algorithm>

#include "base/check.h"
#include "tensor/paged_kv.h"

namespace blockdraft {

PagePool::PagePool(int32_t num_pages) : taken_(static_cast<size_t>(num_pages), false) {
  free_.reserve(static_cast<size_t>(num_pages));
  for (int32_t page = num_pages - 1; page >= 0; --page) free_.push_back(page);
}

int32_t PagePool::take() {
  if (free_.empty()) return kNoPage;
  const int32_t page = free_.back();
  free_.pop_back();
  taken_[static_cast<size_t>(page)] = true;
  return page;
}

void PagePool::give_back(int32_t page) {
  CHECK(page >= 0 && page < num_pages() && taken_[static_cast<size_t>(page)]);
  taken_[static_cast<size_t>(page)] = false;
  free_.push_back(page);
}

PageTable::PageTable(std::span<int32_t> entries) : entries_(entries) { std::ranges::fill(entries_, kNoPage); }

bool PageTable::reserve(PagePool& pool, int64_t positions) {
  const auto wanted = static_cast<int32_t>((positions + kPageSize - 1) / kPageSize);
  CHECK(wanted <= static_cast<int32_t>(entries_.size()));
  if (wanted - end_ > pool.num_free()) return false;
  for (; end_ < wanted; ++end_) entries_[static_cast<size_t>(end_)] = pool.take();
  return true;
}

void PageTable::truncate(PagePool& pool, int64_t positions) {
  const auto kept = static_cast<int32_t>((positions + kPageSize - 1) / kPageSize);
  while (end_ > kept && end_ > begin_) drop(pool, --end_);
  if (end_ == begin_) begin_ = end_ = std::min(end_, kept);
}

void PageTable::free_below(PagePool& pool, int64_t position) {
  const auto first_kept = static_cast<int32_t>(position / kPageSize);
  while (begin_ < first_kept && begin_ < end_) drop(pool, begin_++);
}

int64_t PageTable::first_position_held() const { return static_cast<int64_t>(begin_) * kPageSize; }

void PageTable::drop(PagePool& pool, int32_t entry) {
  pool.give_back(entries_[static_cast<size_t>(entry)]);
  entries_[static_cast<size_t>(entry)] = kNoPage;
}

}  // namespace blockdraft
