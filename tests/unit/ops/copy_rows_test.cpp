#include "ops/copy_rows.h"

#include <gtest/gtest.h>

#include "support/op_context.h"

namespace blockdraft {
namespace {

using test::Matrix;
using test::OpContext;
using test::same_bits;

TEST(CopyRows, ByIndexAndInOrder) {
  std::mt19937 generator(1);
  const std::vector<int32_t> index{6, 0, 3, 3};
  for (int num_threads = 1; num_threads <= 3; ++num_threads) {
    OpContext context(num_threads);
    const Matrix x = Matrix::random(generator, 7, 9000, 9001);
    Matrix by_index(4, 9000, 9003);
    Matrix in_order(4, 9000, 9003);
    copy_rows(context, by_index.view(), x.view(), index.data());
    copy_rows(context, in_order.view(), x.view(), nullptr);
    EXPECT_TRUE(by_index.gaps_untouched() && in_order.gaps_untouched());
    for (int64_t r = 0; r < 4; ++r) {
      EXPECT_TRUE(same_bits(by_index.row(r), x.row(index[static_cast<size_t>(r)]), 9000));
      EXPECT_TRUE(same_bits(in_order.row(r), x.row(r), 9000));
    }
  }
}

TEST(CopyRowsDeathTest, ARowThatIsNotThereIsABug) {
  OpContext context;
  std::mt19937 generator(2);
  const Matrix x = Matrix::random(generator, 2, 3);
  Matrix out(1, 3);
  const int32_t index = 2;
  EXPECT_DEATH(copy_rows(context, out.view(), x.view(), &index), "from");
  Matrix too_many(3, 3);
  EXPECT_DEATH(copy_rows(context, too_many.view(), x.view(), nullptr), "dim");
}

TEST(SetZero, LeavesNothing) {
  OpContext context;
  Matrix out(3, 5);
  set_zero(context, out.view());
  for (int64_t r = 0; r < 3; ++r) {
    for (int64_t c = 0; c < 5; ++c) EXPECT_EQ(out.row(r)[c], 0.0f);
  }
}

}  // namespace
}  // namespace blockdraft
