#include "ops/grouped_conv.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "support/op_context.h"

namespace blockdraft {
namespace {

using test::Matrix;
using test::OpContext;
using test::same_bits;

// A flattened batch of sequences with the given numbers of rows; where they start does not matter to the convolution.
class Blocks {
 public:
  explicit Blocks(const std::vector<int32_t>& widths) : first_row_{0}, pages_(widths.size(), 0) {
    for (const int32_t width : widths) {
      for (int32_t row = 0; row < width; ++row) positions_.push_back(1000 + row);
      first_row_.push_back(static_cast<int32_t>(positions_.size()));
    }
  }
  int64_t num_rows() const { return static_cast<int64_t>(positions_.size()); }
  // How many rows of its own sequence precede a row.
  int64_t rows_before(int64_t row) const {
    return row - *std::prev(std::upper_bound(first_row_.begin(), first_row_.end(), static_cast<int32_t>(row)));
  }
  BatchView view() const {
    return {.num_rows = static_cast<int32_t>(positions_.size()),
            .num_sequences = static_cast<int32_t>(pages_.size()),
            .positions = positions_.data(),
            .first_row = first_row_.data(),
            .page_tables = pages_.data(),
            .page_table_stride = 1};
  }

 private:
  std::vector<int32_t> first_row_;
  std::vector<int32_t> positions_;
  std::vector<int32_t> pages_;
};

struct Kernel {
  Matrix base;
  int64_t group_size;

  int64_t taps() const { return base.rows(); }
  int64_t groups() const { return base.columns() / group_size; }
};

Kernel random_kernel(std::mt19937& generator, int64_t taps, int64_t channels, int64_t group_size) {
  return {Matrix::random(generator, taps, channels, channels + 1), group_size};
}

Matrix random_dynamic(std::mt19937& generator, const Kernel& kernel, int64_t rows) {
  return Matrix::random(generator, rows, kernel.taps() * kernel.groups(), kernel.taps() * kernel.groups() + 3);
}

Matrix run(Context& context, const Kernel& kernel, const Matrix& x, const Matrix& dynamic, const Blocks& blocks) {
  Matrix out(x.rows(), x.columns(), x.columns() + 2);
  grouped_conv(context, {.out = out.view(),
                         .x = x.view(),
                         .base = kernel.base.view(),
                         .dynamic = dynamic.view(),
                         .batch = blocks.view(),
                         .group_size = kernel.group_size});
  EXPECT_TRUE(out.gaps_untouched());
  return out;
}

Matrix filled(const std::vector<std::vector<float>>& rows) {
  Matrix matrix(static_cast<int64_t>(rows.size()), static_cast<int64_t>(rows[0].size()));
  for (size_t r = 0; r < rows.size(); ++r)
    std::copy(rows[r].begin(), rows[r].end(), matrix.row(static_cast<int64_t>(r)));
  return matrix;
}

Matrix rows_of(const Matrix& matrix, int64_t first, int64_t count) {
  Matrix part(count, matrix.columns());
  for (int64_t r = 0; r < count; ++r) std::copy_n(matrix.row(first + r), matrix.columns(), part.row(r));
  return part;
}

// Element (r, c), and in `magnitude` the sum of the magnitudes of what it adds up.
double reference(const Kernel& kernel, const Matrix& x, const Matrix& dynamic, const Blocks& blocks, int64_t r,
                 int64_t c, double& magnitude) {
  double sum = 0.0;
  magnitude = 0.0;
  for (int64_t t = 0; t < kernel.taps() && t <= blocks.rows_before(r); ++t) {
    const auto base = static_cast<double>(kernel.base.row(t)[c]);
    const auto change = static_cast<double>(dynamic.row(r)[t * kernel.groups() + c / kernel.group_size]);
    const auto input = static_cast<double>(x.row(r - t)[c]);
    sum += (base + change) * input;
    magnitude += (std::abs(base) + std::abs(change)) * std::abs(input);
  }
  return sum;
}

void expect_near_reference(Context& context, std::mt19937& generator, const Kernel& kernel, const Blocks& blocks) {
  const int64_t channels = kernel.base.columns();
  const Matrix x = Matrix::random(generator, blocks.num_rows(), channels, channels + 5);
  const Matrix dynamic = random_dynamic(generator, kernel, blocks.num_rows());
  const Matrix out = run(context, kernel, x, dynamic, blocks);
  for (int64_t r = 0; r < x.rows(); ++r) {
    for (int64_t c = 0; c < channels; ++c) {
      double magnitude = 0.0;
      const double expected = reference(kernel, x, dynamic, blocks, r, c, magnitude);
      ASSERT_NEAR(static_cast<double>(out.row(r)[c]), expected, 1e-6 * magnitude)
          << "row " << r << ", channel " << c << ", " << kernel.taps() << " taps, groups of " << kernel.group_size;
    }
  }
}

TEST(GroupedConv, TheWorkedExample) {
  OpContext context;
  const Kernel kernel{filled({{1, 1, 1, 1}, {0.5f, 0.25f, 0, -0.5f}}), 2};
  const Matrix x = filled({{1, 2, 3, 4}, {5, 6, 7, 8}, {9, 10, 11, 12}});
  const Matrix dynamic = filled({{0, 1, 0, 0}, {0.5f, 0, 1, 0}, {0, 0, 0, 2}});
  const Matrix expected = filled({{1, 2, 6, 8}, {9, 11.5f, 7, 6}, {11.5f, 11.5f, 25, 24}});
  EXPECT_TRUE(same_bits(run(context, kernel, x, dynamic, Blocks({3})), expected));
}

TEST(GroupedConv, MatchesTheReferenceForEveryKernelAndGroupSize) {
  std::mt19937 generator(1);
  OpContext context(2);
  for (const int64_t taps : {1, 2, 3, 5}) {
    for (const int64_t channels : {32, 96, 2560}) {
      for (const int64_t group_size : {int64_t{1}, int64_t{16}, int64_t{32}, channels}) {
        const Kernel kernel = random_kernel(generator, taps, channels, group_size);
        for (const auto& widths : {std::vector<int32_t>{1}, {16}, {3, 7}, {1, 4, 2, 1, 8}}) {
          expect_near_reference(context, generator, kernel, Blocks(widths));
        }
      }
    }
  }
}

TEST(GroupedConv, SequencesWithoutRowsAndBatchesWithoutRows) {
  std::mt19937 generator(2);
  OpContext context;
  const Kernel kernel = random_kernel(generator, 3, 32, 16);
  for (const auto& widths : {std::vector<int32_t>{0, 3, 0, 0, 5, 0}, {0}, {}}) {
    expect_near_reference(context, generator, kernel, Blocks(widths));
  }
}

TEST(GroupedConv, FieldFault6_UnequalWidthsInOneBatchGiveTheBitsOfSingleRuns) {
  std::mt19937 generator(3);
  OpContext context(3);
  for (const auto& widths : {std::vector<int32_t>{3, 7}, {7, 3}, {1, 16, 2, 5}, {8, 8, 1, 1, 8}}) {
    const Kernel kernel = random_kernel(generator, 3, 96, 16);
    const Blocks blocks(widths);
    const Matrix x = Matrix::random(generator, blocks.num_rows(), 96);
    const Matrix dynamic = random_dynamic(generator, kernel, blocks.num_rows());
    const Matrix together = run(context, kernel, x, dynamic, blocks);
    int64_t first = 0;
    for (const int32_t width : widths) {
      const Matrix alone =
          run(context, kernel, rows_of(x, first, width), rows_of(dynamic, first, width), Blocks({width}));
      EXPECT_TRUE(same_bits(rows_of(together, first, width), alone)) << "rows from " << first;
      first += width;
    }
  }
}

TEST(GroupedConv, ANeighbouringSequenceOfNansDoesNotLeakIn) {
  std::mt19937 generator(4);
  OpContext context;
  const Kernel kernel = random_kernel(generator, 5, 32, 16);
  const Blocks blocks({4, 2, 4});
  Matrix x = Matrix::random(generator, 10, 32);
  const Matrix dynamic = random_dynamic(generator, kernel, 10);
  for (const int64_t r : {0, 1, 2, 3, 6, 7, 8, 9}) std::fill_n(x.row(r), 32, std::nanf(""));
  const Matrix out = run(context, kernel, x, dynamic, blocks);
  for (int64_t r = 0; r < 10; ++r) {
    for (int64_t c = 0; c < 32; ++c) ASSERT_EQ(std::isnan(out.row(r)[c]), r < 4 || r >= 6) << r;
  }
}

TEST(GroupedConv, LaterRowsDoNotReachEarlierOnes) {
  std::mt19937 generator(5);
  OpContext context;
  const Kernel kernel = random_kernel(generator, 2, 32, 16);
  Matrix x = Matrix::random(generator, 8, 32);
  const Matrix dynamic = random_dynamic(generator, kernel, 8);
  const Matrix before = run(context, kernel, x, dynamic, Blocks({8}));
  for (int64_t c = 0; c < 32; ++c) x.row(5)[c] += 1.0f;
  const Matrix after = run(context, kernel, x, dynamic, Blocks({8}));
  for (int64_t r = 0; r < 8; ++r) EXPECT_EQ(same_bits(before.row(r), after.row(r), 32), r != 5 && r != 6) << r;
}

TEST(GroupedConv, AShortenedBlockHasTheBitsOfTheFullBlocksFirstRows) {
  std::mt19937 generator(6);
  OpContext context;
  const Kernel kernel = random_kernel(generator, 2, 64, 16);
  const Matrix x = Matrix::random(generator, 16, 64);
  const Matrix dynamic = random_dynamic(generator, kernel, 16);
  const Matrix full = run(context, kernel, x, dynamic, Blocks({16}));
  for (int32_t width = 1; width < 16; ++width) {
    const Matrix part = run(context, kernel, rows_of(x, 0, width), rows_of(dynamic, 0, width), Blocks({width}));
    EXPECT_TRUE(same_bits(part, rows_of(full, 0, width)));
  }
}

TEST(GroupedConv, AnIdentityBaseWithoutDynamicPartChangesNothing) {
  std::mt19937 generator(7);
  OpContext context;
  for (const int64_t taps : {1, 2, 5}) {
    Kernel kernel{Matrix(taps, 96), 16};
    for (int64_t t = 0; t < taps; ++t) std::fill_n(kernel.base.row(t), 96, t == 0 ? 1.0f : 0.0f);
    const Matrix x = Matrix::random(generator, 10, 96);
    Matrix dynamic(10, taps * 6);
    for (int64_t r = 0; r < 10; ++r) std::fill_n(dynamic.row(r), taps * 6, 0.0f);
    EXPECT_TRUE(same_bits(run(context, kernel, x, dynamic, Blocks({3, 7})), x));
  }
}

TEST(GroupedConv, FieldFault8_ActivationsBeyondTheRangeOfHalfPrecisionStayFinite) {
  std::mt19937 generator(8);
  OpContext context;
  const Kernel kernel = random_kernel(generator, 2, 32, 16);
  Matrix x = Matrix::random(generator, 4, 32);
  for (int64_t r = 0; r < 4; ++r) std::transform(x.row(r), x.row(r) + 32, x.row(r), [](float v) { return v * 1e9f; });
  const Matrix out = run(context, kernel, x, random_dynamic(generator, kernel, 4), Blocks({4}));
  for (int64_t r = 0; r < 4; ++r) {
    EXPECT_TRUE(std::all_of(out.row(r), out.row(r) + 32, [](float v) { return std::isfinite(v); }));
  }
}

TEST(GroupedConv, BitsDoNotDependOnRowsPositionCompanionsOrThreads) {
  std::mt19937 generator(9);
  OpContext one(1);
  const Kernel kernel = random_kernel(generator, 2, 2560, 16);
  const Matrix x = Matrix::random(generator, 4, 2560);
  const Matrix dynamic = random_dynamic(generator, kernel, 4);
  const Matrix expected = run(one, kernel, x, dynamic, Blocks({4}));
  for (int num_threads = 1; num_threads <= 4; ++num_threads) {
    OpContext context(num_threads);
    for (int32_t before = 0; before < 6; ++before) {
      for (int32_t after = 0; after < 6; ++after) {
        const Blocks blocks({before, 4, after});
        Matrix wide = Matrix::random(generator, blocks.num_rows(), 2560);
        Matrix changes = random_dynamic(generator, kernel, blocks.num_rows());
        for (int64_t r = 0; r < 4; ++r) {
          std::copy_n(x.row(r), 2560, wide.row(before + r));
          std::copy_n(dynamic.row(r), dynamic.columns(), changes.row(before + r));
        }
        ASSERT_TRUE(same_bits(rows_of(run(context, kernel, wide, changes, blocks), before, 4), expected));
      }
    }
  }
}

TEST(GroupedConvDeathTest, ShapesThatDoNotFit) {
  std::mt19937 generator(10);
  OpContext context;
  const Kernel kernel = random_kernel(generator, 2, 32, 16);
  const Matrix x = Matrix::random(generator, 3, 32);
  const Matrix narrow = Matrix::random(generator, 3, 3);
  EXPECT_DEATH(run(context, kernel, x, narrow, Blocks({3})), "dynamic");
  EXPECT_DEATH(run(context, kernel, x, random_dynamic(generator, kernel, 3), Blocks({4})), "num_rows");
  const Kernel uneven{Matrix::random(generator, 2, 32), 12};
  EXPECT_DEATH(run(context, uneven, x, narrow, Blocks({3})), "group_size");
}

}  // namespace
}  // namespace blockdraft
