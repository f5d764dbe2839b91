// Which pages are free, and which pages a sequence holds. Bookkeeping only: the memory is elsewhere (nn/kv_cache.h).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace blockdraft {

inline constexpr int32_t kNoPage = -1;

// Numbers 0 .. num_pages - 1, each free or taken. Allocates memory in the constructor only.
class PagePool {
 public:
  explicit PagePool(int32_t num_pages);

  int32_t take();  // kNoPage if none is free
  void give_back(int32_t page);
  int32_t num_pages() const { return static_cast<int32_t>(taken_.size()); }
  int32_t num_free() const { return static_cast<int32_t>(free_.size()); }

 private:
  std::vector<int32_t> free_;  // a stack: the page freed last is taken first, while its memory is warm
  std::vector<bool> taken_;    // to catch a page given back twice
};

// The pages of one sequence: entry j holds positions j * kPageSize .. (j + 1) * kPageSize - 1.
// Entries are written into `entries`, which the owner provides and which lies in device memory.
class PageTable {
 public:
  explicit PageTable(std::span<int32_t> entries);

  // Makes room for positions 0 .. positions - 1. False, with nothing changed, if the pool has too few pages.
  bool reserve(PagePool& pool, int64_t positions);
  // Gives back the pages that hold no position below `positions`.
  void truncate(PagePool& pool, int64_t positions);
  // Gives back the pages all of whose positions are below `position`: a sliding window has passed them.
  void free_below(PagePool& pool, int64_t position);

  std::span<const int32_t> entries() const { return entries_; }
  int64_t first_position_held() const;  // of the page held first; of the next one to be taken if none is held
  int32_t num_pages_held() const { return end_ - begin_; }

 private:
  void drop(PagePool& pool, int32_t entry);

  std::span<int32_t> entries_;
  int32_t begin_ = 0;  // entries [begin_, end_) hold pages, all others kNoPage
  int32_t end_ = 0;
};

}  // namespace blockdraft
