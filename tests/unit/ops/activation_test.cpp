#include "ops/activation.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "support/op_context.h"

namespace blockdraft {
namespace {

using test::Matrix;
using test::OpContext;
using test::same_bits;

double reference_silu_mul(float gate, float up) {
  return static_cast<double>(gate) / (1.0 + std::exp(-static_cast<double>(gate))) * static_cast<double>(up);
}

TEST(SiluMul, MatchesTheReference) {
  std::mt19937 generator(1);
  OpContext context(2);
  for (const int64_t inner : {1, 7, 100, 1024, 4097}) {
    for (const int64_t rows : {0, 1, 5}) {
      const Matrix gate_up = Matrix::random(generator, rows, 2 * inner, 2 * inner + 1);
      Matrix out(rows, inner, inner + 2);
      silu_mul(context, out.view(), gate_up.view());
      EXPECT_TRUE(out.gaps_untouched());
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t i = 0; i < inner; ++i) {
          const double expected = reference_silu_mul(gate_up.row(r)[i], gate_up.row(r)[inner + i]);
          ASSERT_NEAR(static_cast<double>(out.row(r)[i]), expected, 1e-6 * std::abs(expected));
        }
      }
    }
  }
}

TEST(SiluMul, ExtremeGates) {
  OpContext context;
  Matrix gate_up(1, 12);
  const float gates[] = {-200.0f, -88.0f, -0.0f, 0.0f, 88.0f, 200.0f};
  for (int64_t i = 0; i < 6; ++i) {
    gate_up.row(0)[i] = gates[i];
    gate_up.row(0)[6 + i] = 2.0f;
  }
  Matrix out(1, 6);
  silu_mul(context, out.view(), gate_up.view());
  EXPECT_EQ(out.row(0)[0], 0.0f);
  EXPECT_NEAR(out.row(0)[1], 0.0f, 1e-35f);
  EXPECT_EQ(out.row(0)[2], 0.0f);
  EXPECT_EQ(out.row(0)[3], 0.0f);
  EXPECT_EQ(out.row(0)[4], 176.0f);
  EXPECT_EQ(out.row(0)[5], 400.0f);
}

TEST(ScaleSoftcap, MatchesTheReference) {
  std::mt19937 generator(2);
  OpContext context(2);
  for (const float softcap : {0.0f, 0.5f, 30.0f}) {
    for (const float multiplier : {1.0f, 0.125f}) {
      Matrix z = Matrix::random(generator, 3, 501, 505);
      const Matrix before = z;
      scale_softcap(context, z.view(), multiplier, softcap);
      EXPECT_TRUE(z.gaps_untouched());
      for (int64_t r = 0; r < 3; ++r) {
        for (int64_t c = 0; c < 501; ++c) {
          double expected = static_cast<double>(before.row(r)[c]) * static_cast<double>(multiplier);
          if (softcap > 0.0f) {
            const auto cap = static_cast<double>(softcap);
            expected = std::tanh(expected / cap) * cap;
          }
          ASSERT_NEAR(static_cast<double>(z.row(r)[c]), expected, 1e-6 * std::abs(expected));
        }
      }
    }
  }
}

TEST(Activation, BitsDoNotDependOnRowsPositionCompanionsOrThreads) {
  std::mt19937 generator(3);
  OpContext one(1);
  const Matrix probe = Matrix::random(generator, 1, 600);
  Matrix expected(1, 300);
  silu_mul(one, expected.view(), probe.view());
  Matrix capped = expected;
  scale_softcap(one, capped.view(), 0.5f, 2.0f);
  for (int num_threads = 1; num_threads <= 4; ++num_threads) {
    OpContext context(num_threads);
    for (int64_t rows = 1; rows <= 64; ++rows) {
      Matrix gate_up = Matrix::random(generator, rows, 600);
      const int64_t at = static_cast<int64_t>(generator()) % rows;
      std::copy_n(probe.row(0), 600, gate_up.row(at));
      Matrix out(rows, 300);
      silu_mul(context, out.view(), gate_up.view());
      ASSERT_TRUE(same_bits(out.row(at), expected.row(0), 300));
      scale_softcap(context, out.view(), 0.5f, 2.0f);
      ASSERT_TRUE(same_bits(out.row(at), capped.row(0), 300));
    }
  }
}

}  // namespace
}  // namespace blockdraft
