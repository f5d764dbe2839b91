#include "ops/cpu/lanes.h"

#include <array>

#include <gtest/gtest.h>

#include "support/op_context.h"

namespace blockdraft {
namespace {

using test::Matrix;
using test::same_bits;

// The order that the header promises, one element at a time.
float plain_dot(const float* a, const float* b, int64_t count) {
  std::array<float, 8> lanes{};
  const int64_t part = count - count % 8;
  for (int64_t k = 0; k < part; ++k) lanes[static_cast<size_t>(k % 8)] += a[k] * b[k];
  std::array<float, 4> sums{};
  for (size_t i = 0; i < 4; ++i) sums[i] = lanes[i] + lanes[i + 4];
  float total = (sums[0] + sums[2]) + (sums[1] + sums[3]);
  for (int64_t k = part; k < count; ++k) total += a[k] * b[k];
  return total;
}

TEST(Lanes, DotRunsInThePromisedOrder) {
  std::mt19937 generator(1);
  for (int64_t count = 0; count <= 70; ++count) {
    const Matrix rows = Matrix::random(generator, 2, count);
    const float expected = plain_dot(rows.row(0), rows.row(1), count);
    const float value = cpu::dot(rows.row(0), rows.row(1), count);
    EXPECT_TRUE(same_bits(&value, &expected, 1)) << count;
  }
}

template <int kRowsA, int kRowsB>
void expect_tile_equals_single_sums() {
  std::mt19937 generator(2);
  const Matrix a = Matrix::random(generator, kRowsA, 64, 67);
  const Matrix b = Matrix::random(generator, kRowsB, 64, 65);
  cpu::Lanes sums[kRowsA][kRowsB + 1];
  // In two stretches, as linear does it.
  cpu::add_products<kRowsA, kRowsB>(sums[0], kRowsB + 1, a.row(0), 67, b.row(0), 65, 24);
  cpu::add_products<kRowsA, kRowsB>(sums[0], kRowsB + 1, a.row(0) + 24, 67, b.row(0) + 24, 65, 40);
  for (int i = 0; i < kRowsA; ++i) {
    for (int j = 0; j < kRowsB; ++j) {
      const float value = cpu::sum_of(sums[i][j]);
      const float expected = plain_dot(a.row(i), b.row(j), 64);
      EXPECT_TRUE(same_bits(&value, &expected, 1)) << i << ", " << j;
    }
  }
}

TEST(Lanes, ATileOfSumsHasTheBitsOfSingleSums) {
  expect_tile_equals_single_sums<1, 1>();
  expect_tile_equals_single_sums<1, 4>();
  expect_tile_equals_single_sums<2, 2>();
  expect_tile_equals_single_sums<2, 4>();
  expect_tile_equals_single_sums<3, 4>();
}

}  // namespace
}  // namespace blockdraft
