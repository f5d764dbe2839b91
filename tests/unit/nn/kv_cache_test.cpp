#include "nn/kv_cache.h"

#include <cstring>
#include <set>

#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "support/take.h"

namespace blockdraft {
namespace {

using test::take;

constexpr KvCacheShape kShape{
    .num_layers = 3, .num_kv_heads = 2, .head_dim = 4, .max_sequences = 2, .max_positions = 40, .positions_held = 40};

TEST(KvCache, HoldsAllPositionsOfAllSequences) {
  EXPECT_EQ(KvCache::pages_per_sequence(kShape), 3);
  EXPECT_EQ(KvCache::size_bytes(kShape), size_t{6} * 16 * 2 * 4 * 2 * 3 * sizeof(float));
  KvCache cache = take(KvCache::create(kShape, "test pages"));
  EXPECT_EQ(cache.num_pages(), 6);
  EXPECT_EQ(cache.page_table_stride(), 3);
  std::set<int32_t> pages;
  for (const int32_t slot : {0, 1}) {
    cache.reserve(slot, 40);
    for (int32_t entry = 0; entry < 3; ++entry) pages.insert(cache.page_table(slot)[entry]);
  }
  EXPECT_EQ(pages, (std::set<int32_t>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(cache.num_free_pages(), 0);
  cache.truncate(0, 17);
  EXPECT_EQ(cache.num_free_pages(), 1);
  cache.truncate(0, 0);
  EXPECT_EQ(cache.num_free_pages(), 3);
  EXPECT_EQ(cache.page_table(0)[0], kNoPage);
  EXPECT_NE(cache.page_table(1)[0], kNoPage);
}

TEST(KvCache, LayersDoNotOverlap) {
  KvCache cache = take(KvCache::create(kShape, "test pages"));
  const int64_t elements = int64_t{6} * 2 * kPageSize * 4;
  for (int32_t layer = 0; layer < 3; ++layer) {
    const PagedKvView kv = cache.layer(layer);
    EXPECT_EQ(kv.num_pages, 6);
    EXPECT_EQ(kv.offset(5, 1, kPageSize - 1) + 4, elements);
    for (int64_t i = 0; i < elements; ++i) {
      ASSERT_EQ(kv.k_f32()[i], 0.0f);
      kv.k_f32()[i] = static_cast<float>(1 + 2 * layer);
      ASSERT_EQ(kv.v_f32()[i], 0.0f);
      kv.v_f32()[i] = static_cast<float>(2 + 2 * layer);
    }
  }
  for (int32_t layer = 0; layer < 3; ++layer) {
    const PagedKvView kv = cache.layer(layer);
    for (int64_t i = 0; i < elements; ++i) {
      ASSERT_EQ(kv.k_f32()[i], static_cast<float>(1 + 2 * layer));
      ASSERT_EQ(kv.v_f32()[i], static_cast<float>(2 + 2 * layer));
    }
  }
}

// A window of 20 positions that may begin anywhere: at most 3 pages of 16 at a time, whatever the position.
TEST(KvCache, AMovingSpanStaysWithinItsPages) {
  KvCacheShape shape = kShape;
  shape.max_positions = 1000;
  shape.positions_held = 20;
  EXPECT_EQ(KvCache::pages_per_sequence(shape), 3);
  KvCache cache = take(KvCache::create(shape, "test pages"));
  EXPECT_EQ(cache.num_pages(), 6);
  for (int64_t end = 1; end <= 1000; ++end) {
    for (const int32_t slot : {0, 1}) {
      cache.free_below(slot, end < 20 ? 0 : end - 20);
      cache.reserve(slot, end);
      for (int64_t position = end < 20 ? 0 : end - 20; position < end; ++position) {
        ASSERT_NE(cache.page_table(slot)[position / kPageSize], kNoPage);
      }
    }
  }
  EXPECT_LE(cache.num_free_pages(), 2);
}

TEST(KvCache, FieldFault7_SaysWhatDoesNotFitIntoMemory) {
  KvCacheShape shape = kShape;
  shape.num_layers = 4096;
  shape.max_positions = shape.positions_held = int64_t{1} << 24;
  shape.head_dim = 4096;
  shape.num_kv_heads = 64;
  expect_error(KvCache::create(shape, "test pages"), Code::out_of_memory, {"test pages"});
}

TEST(KvCacheDeathTest, MoreThanTheShapeIsABug) {
  KvCache cache = take(KvCache::create(kShape, "test pages"));
  EXPECT_DEATH(cache.reserve(0, 49), "entries_");
}

}  // namespace
}  // namespace blockdraft
