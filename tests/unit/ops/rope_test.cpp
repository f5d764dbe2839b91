#include "ops/rope.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "support/op_context.h"
#include "support/reference_ops.h"

namespace blockdraft {
namespace {

using test::Matrix;
using test::OpContext;
using test::same_bits;

Matrix frequencies(int64_t half, double theta) {
  Matrix inv_freq(1, half);
  for (int64_t i = 0; i < half; ++i) {
    inv_freq.row(0)[i] = static_cast<float>(std::pow(theta, -static_cast<double>(i) / static_cast<double>(half)));
  }
  return inv_freq;
}

Matrix table_of(Context& context, const std::vector<int32_t>& positions, const Matrix& inv_freq, float factor) {
  Matrix table(static_cast<int64_t>(positions.size()), 2 * inv_freq.columns());
  rope_table(context, table.view(), positions.data(), view_f32(inv_freq.row(0), Shape{inv_freq.columns()}), factor);
  return table;
}

TEST(RopeTable, AnglesAreProductsInFloat32) {
  OpContext context(2);
  const Matrix inv_freq = frequencies(64, 1e6);
  const std::vector<int32_t> positions{0, 1, 2, 77, 2047, 40959, 131071};
  const Matrix table = table_of(context, positions, inv_freq, 1.25f);
  for (size_t r = 0; r < positions.size(); ++r) {
    const float* row = table.row(static_cast<int64_t>(r));
    for (int64_t i = 0; i < 64; ++i) {
      const auto angle = static_cast<double>(static_cast<float>(positions[r]) * inv_freq.row(0)[i]);
      EXPECT_NEAR(static_cast<double>(row[i]), 1.25 * std::cos(angle), 3e-7);
      EXPECT_NEAR(static_cast<double>(row[64 + i]), 1.25 * std::sin(angle), 3e-7);
    }
  }
}

TEST(Rope, RotatesEachHeadAsTheReference) {
  std::mt19937 generator(1);
  OpContext context(2);
  for (const int64_t half : {1, 3, 32, 64, 100}) {
    for (const int64_t heads : {1, 5}) {
      const Matrix inv_freq = frequencies(half, 1e4);
      const std::vector<int32_t> positions{0, 5, 6, 7, 300};
      Matrix x = Matrix::random(generator, 5, heads * 2 * half, heads * 2 * half + 3);
      const Matrix before = x;
      rope(context, x.view(), table_of(context, positions, inv_freq, 0.75f).view());
      EXPECT_TRUE(x.gaps_untouched());
      for (int64_t r = 0; r < 5; ++r) {
        for (int64_t first = 0; first < x.columns(); first += 2 * half) {
          const auto expected = test::reference_rope(before.row(r) + first, inv_freq.row(0), half,
                                                     positions[static_cast<size_t>(r)], 0.75);
          for (int64_t i = 0; i < 2 * half; ++i) {
            // An angle of up to 300 has an error of 300 * 2^-24.
            ASSERT_NEAR(static_cast<double>(x.row(r)[first + i]), expected[static_cast<size_t>(i)], 1e-4);
          }
        }
      }
    }
  }
}

TEST(Rope, PositionZeroChangesNothing) {
  std::mt19937 generator(2);
  OpContext context;
  Matrix x = Matrix::random(generator, 1, 128);
  const Matrix before = x;
  rope(context, x.view(), table_of(context, {0}, frequencies(32, 1e4), 1.0f).view());
  EXPECT_TRUE(same_bits(x, before));
}

TEST(Rope, BitsDoNotDependOnRowsPositionCompanionsOrThreads) {
  std::mt19937 generator(3);
  const Matrix inv_freq = frequencies(32, 1e4);
  const Matrix probe = Matrix::random(generator, 1, 128);
  OpContext one(1);
  Matrix expected = probe;
  rope(one, expected.view(), table_of(one, {1234}, inv_freq, 1.0f).view());
  for (int num_threads = 1; num_threads <= 4; ++num_threads) {
    OpContext context(num_threads);
    for (int64_t rows = 1; rows <= 64; ++rows) {
      Matrix x = Matrix::random(generator, rows, 128);
      std::vector<int32_t> positions(static_cast<size_t>(rows));
      for (int32_t& position : positions) position = static_cast<int32_t>(generator() % 4096);
      const int64_t at = static_cast<int64_t>(generator()) % rows;
      positions[static_cast<size_t>(at)] = 1234;
      std::copy_n(probe.row(0), 128, x.row(at));
      rope(context, x.view(), table_of(context, positions, inv_freq, 1.0f).view());
      ASSERT_TRUE(same_bits(x.row(at), expected.row(0), 128));
    }
  }
}

}  // namespace
}  // namespace blockdraft
