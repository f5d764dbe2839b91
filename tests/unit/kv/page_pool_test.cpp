#include "kv/page_pool.h"

#include <algorithm>
#include <random>
#include <set>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "tensor/paged_kv.h"

namespace blockdraft {
namespace {

TEST(PagePool, GivesEveryPageOnce) {
  PagePool pool(5);
  std::set<int32_t> pages;
  for (int i = 0; i < 5; ++i) pages.insert(pool.take());
  EXPECT_EQ(pages, (std::set<int32_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(pool.num_free(), 0);
  EXPECT_EQ(pool.take(), kNoPage);
  pool.give_back(3);
  EXPECT_EQ(pool.num_free(), 1);
  EXPECT_EQ(pool.take(), 3);
}

TEST(PagePool, IsNoPoolOfNothing) {
  PagePool pool(0);
  EXPECT_EQ(pool.take(), kNoPage);
  EXPECT_EQ(pool.num_pages(), 0);
}

TEST(PagePoolDeathTest, APageIsGivenBackOnceOnly) {
  PagePool pool(2);
  const int32_t page = pool.take();
  pool.give_back(page);
  EXPECT_DEATH(pool.give_back(page), "taken_");
  EXPECT_DEATH(pool.give_back(2), "num_pages");
  EXPECT_DEATH(pool.give_back(kNoPage), "page >= 0");
}

TEST(PageTable, HoldsAPageForEachStartedSpan) {
  PagePool pool(4);
  std::vector<int32_t> entries(4, 7);
  PageTable table(entries);
  EXPECT_EQ(entries, std::vector<int32_t>(4, kNoPage));
  EXPECT_TRUE(table.reserve(pool, 0));
  EXPECT_EQ(table.num_pages_held(), 0);
  EXPECT_TRUE(table.reserve(pool, 1));
  EXPECT_TRUE(table.reserve(pool, kPageSize));
  EXPECT_EQ(table.num_pages_held(), 1);
  EXPECT_TRUE(table.reserve(pool, kPageSize + 1));
  EXPECT_EQ(table.num_pages_held(), 2);
  table.truncate(pool, kPageSize);
  EXPECT_EQ(table.num_pages_held(), 1);
  EXPECT_NE(table.entries()[0], kNoPage);
  EXPECT_EQ(table.entries()[1], kNoPage);
}

TEST(PageTableDeathTest, DoesNotGrowBeyondItsEntries) {
  PagePool pool(4);
  std::vector<int32_t> entries(2);
  PageTable table(entries);
  EXPECT_DEATH((void)table.reserve(pool, 2 * kPageSize + 1), "entries_");
}

// One page per entry, or none: what a table must hold, written down entry by entry.
class DenseModel {
 public:
  explicit DenseModel(size_t entries) : held_(entries, false) {}
  static size_t pages(int64_t positions) { return static_cast<size_t>((positions + kPageSize - 1) / kPageSize); }

  // Entries that a reservation adds: those from the end of what is held.
  size_t missing(int64_t positions) const { return pages(positions) > end() ? pages(positions) - end() : 0; }
  void reserve(int64_t positions) {
    for (size_t j = end(); j < pages(positions); ++j) set(j, true);
  }
  void truncate(int64_t positions) {
    for (size_t j = pages(positions); j < held_.size(); ++j) held_[j] = false;
    end_ = std::min(end_, pages(positions));
  }
  void free_below(int64_t position) {
    for (size_t j = 0; j < static_cast<size_t>(position / kPageSize) && j < held_.size(); ++j) held_[j] = false;
  }
  size_t count() const { return static_cast<size_t>(std::ranges::count(held_, true)); }
  bool held(size_t j) const { return held_[j]; }

 private:
  // Entries are filled in order and emptied at both ends; the end stays where it was when the beginning catches up.
  size_t end() const { return end_; }
  void set(size_t j, bool value) {
    held_[j] = value;
    end_ = std::max(end_, j + 1);
  }
  std::vector<bool> held_;
  size_t end_ = 0;
};

TEST(PageTable, EqualsADenseModelUnderRandomOperations) {
  constexpr size_t kEntries = 12;
  constexpr size_t kTables = 4;
  std::mt19937 generator(17);
  const auto below = [&](int64_t n) { return static_cast<int64_t>(generator() % static_cast<uint32_t>(n)); };
  int num_refused = 0;
  for (int round = 0; round < 40; ++round) {
    PagePool pool(static_cast<int32_t>(8 + below(24)));
    std::vector<std::vector<int32_t>> entries(kTables, std::vector<int32_t>(kEntries));
    std::vector<PageTable> tables;
    std::vector<DenseModel> models(kTables, DenseModel(kEntries));
    for (auto& memory : entries) tables.emplace_back(memory);
    for (int step = 0; step < 400; ++step) {
      const auto t = static_cast<size_t>(below(kTables));
      const int64_t position = below(static_cast<int64_t>(kEntries) * kPageSize + 1);
      const std::vector<int32_t> before = entries[t];
      const int32_t free_before = pool.num_free();
      switch (below(5)) {
        case 0:
          tables[t].truncate(pool, position);
          models[t].truncate(position);
          break;
        case 1:
          tables[t].free_below(pool, position);
          models[t].free_below(position);
          break;
        default: {
          const bool fits = models[t].missing(position) <= static_cast<size_t>(free_before);
          ASSERT_EQ(tables[t].reserve(pool, position), fits);
          if (fits) {
            models[t].reserve(position);
          } else {
            ++num_refused;
            ASSERT_EQ(entries[t], before);
            ASSERT_EQ(pool.num_free(), free_before);
          }
        }
      }
      std::set<int32_t> taken;
      size_t count = 0;
      for (size_t i = 0; i < kTables; ++i) {
        ASSERT_EQ(static_cast<size_t>(tables[i].num_pages_held()), models[i].count());
        for (size_t j = 0; j < kEntries; ++j) {
          ASSERT_EQ(entries[i][j] != kNoPage, models[i].held(j)) << "table " << i << ", entry " << j;
          if (entries[i][j] == kNoPage) continue;
          ASSERT_LT(entries[i][j], pool.num_pages());
          taken.insert(entries[i][j]);
          ++count;
        }
      }
      ASSERT_EQ(taken.size(), count) << "a page is held twice";
      ASSERT_EQ(pool.num_free(), pool.num_pages() - static_cast<int32_t>(count));
      // Pages that stay are not exchanged for others.
      for (size_t j = 0; j < kEntries; ++j) {
        if (before[j] == kNoPage || entries[t][j] == kNoPage) continue;
        ASSERT_EQ(entries[t][j], before[j]);
      }
    }
  }
  EXPECT_GT(num_refused, 100);
}

}  // namespace
}  // namespace blockdraft
