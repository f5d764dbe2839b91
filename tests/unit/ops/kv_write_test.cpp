#include "ops/kv_write.h"

#include <gtest/gtest.h>

#include "support/paged_sequences.h"

namespace blockdraft {
namespace {

using test::Matrix;
using test::OpContext;
using test::PagedSequences;
using test::same_bits;

TEST(KvWrite, EachRowGoesToThePageAndSlotOfItsPosition) {
  std::mt19937 generator(1);
  for (int num_threads = 1; num_threads <= 3; ++num_threads) {
    OpContext context(num_threads);
    PagedSequences pages({{1, 0, 1}, {2, 15, 3}, {3, 31, 40}, {4, 100, 17, 5}}, 3, 6, 9);
    const BatchView batch = pages.batch();
    const Matrix k = Matrix::random(generator, batch.num_rows, 18, 20);
    const Matrix v = Matrix::random(generator, batch.num_rows, 18, 23);
    kv_write(context, pages.kv(), batch, k.view(), v.view());
    int64_t row = 0;
    for (size_t s = 0; s < pages.specs().size(); ++s) {
      for (int32_t p = pages.specs()[s].first_position; p < pages.specs()[s].end(); ++p, ++row) {
        for (int32_t head = 0; head < 3; ++head) {
          EXPECT_TRUE(same_bits(pages.kv().k_f32() + pages.offset(s, p, head), k.row(row) + head * 6, 6));
          EXPECT_TRUE(same_bits(pages.kv().v_f32() + pages.offset(s, p, head), v.row(row) + head * 6, 6));
        }
      }
    }
    // Nothing else was written: the pool was NaN.
    const int64_t size = int64_t{pages.kv().num_pages} * 3 * kPageSize * 6;
    const auto written = [&](const float* pool) {
      return std::count_if(pool, pool + size, [](float x) { return x == x; });
    };
    EXPECT_EQ(written(pages.kv().k_f32()), row * 18);
    EXPECT_EQ(written(pages.kv().v_f32()), row * 18);
  }
}

TEST(KvWrite, NoRows) {
  OpContext context;
  PagedSequences pages({{1, 0, 1}}, 1, 4, 1);
  const Matrix none(0, 4);
  kv_write(context, pages.kv(), BatchView{}, none.view(), none.view());
}

TEST(KvWriteDeathTest, RowsInAFreedPage) {
  OpContext context;
  PagedSequences pages({{1, 4, 2, 1}}, 1, 4, 1);
  const Matrix rows(2, 4);
  EXPECT_DEATH(kv_write(context, pages.kv(), pages.batch(), rows.view(), rows.view()), "page >= 0");
}

}  // namespace
}  // namespace blockdraft
