#include "tensor/shape.h"

#include <vector>

#include <gtest/gtest.h>

namespace blockdraft {
namespace {

TEST(Shape, KnowsItsExtents) {
  const Shape shape{3, 4, 5};
  EXPECT_EQ(shape.rank(), 3);
  EXPECT_EQ(shape[0], 3);
  EXPECT_EQ(shape[2], 5);
  EXPECT_EQ(shape.num_elements(), 60);
  EXPECT_EQ(std::vector<int64_t>(shape.dims().begin(), shape.dims().end()), (std::vector<int64_t>{3, 4, 5}));
}

TEST(Shape, AScalarHasOneElementAndAnEmptyExtentNone) {
  EXPECT_EQ(Shape{}.rank(), 0);
  EXPECT_EQ(Shape{}.num_elements(), 1);
  EXPECT_EQ((Shape{7, 0}).num_elements(), 0);
}

TEST(Shape, CountsBeyond32Bits) { EXPECT_EQ((Shape{1 << 20, 1 << 20}).num_elements(), int64_t{1} << 40); }

TEST(Shape, EqualityIncludesTheRank) {
  EXPECT_EQ((Shape{2, 3}), (Shape{2, 3}));
  EXPECT_NE((Shape{2, 3}), (Shape{3, 2}));
  EXPECT_NE((Shape{2}), (Shape{2, 0}));
  EXPECT_NE(Shape{}, Shape{0});
}

TEST(Shape, Prints) {
  EXPECT_EQ(to_string(Shape{4096, 12288}), "[4096, 12288]");
  EXPECT_EQ(to_string(Shape{}), "[]");
  EXPECT_EQ(to_string(std::vector<int64_t>{1, 2, 3, 4, 5, 6}), "[1, 2, 3, 4, 5, 6]");
}

TEST(ShapeDeathTest, MoreThanFourDimensionsAreABug) { EXPECT_DEATH((Shape{1, 2, 3, 4, 5}), "kMaxRank"); }

}  // namespace
}  // namespace blockdraft
