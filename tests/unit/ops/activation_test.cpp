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

TEST(SiluMul, NotANumberStaysWhereItIs) {
  OpContext context;
  Matrix gate_up(1, 70);
  std::fill_n(gate_up.row(0), 70, 1.5f);
  gate_up.row(0)[3] = std::nanf("");
  gate_up.row(0)[34] = std::nanf("");
  gate_up.row(0)[35 + 20] = std::nanf("");
  Matrix out(1, 35);
  silu_mul(context, out.view(), gate_up.view());
  for (int64_t i = 0; i < 35; ++i) EXPECT_EQ(std::isnan(out.row(0)[i]), i == 3 || i == 20 || i == 34) << i;
}

// Wherever a row stands, and whatever the others hold, and wherever an element stands in its row.
TEST(SiluMul, AnElementHasTheSameBitsEverywhere) {
  std::mt19937 generator(4);
  const int64_t inner = 1003;
  const Matrix gate_up = Matrix::random(generator, 9, 2 * inner);
  OpContext one;
  OpContext several(3);
  Matrix together(9, inner);
  silu_mul(several, together.view(), gate_up.view());
  for (int64_t r = 0; r < 9; ++r) {
    for (const int64_t first : {int64_t{0}, int64_t{1}, int64_t{500}, inner - 1}) {
      const int64_t count = inner - first;
      Matrix part(1, 2 * count);
      std::copy_n(gate_up.row(r) + first, count, part.row(0));
      std::copy_n(gate_up.row(r) + inner + first, count, part.row(0) + count);
      Matrix out(1, count);
      silu_mul(one, out.view(), part.view());
      EXPECT_TRUE(same_bits(out.row(0), together.row(r) + first, count)) << r << ", " << first;
    }
  }
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

double reference_sigmoid(float x) { return 1.0 / (1.0 + std::exp(-static_cast<double>(x))); }

TEST(Accumulate, IsTheSumRoundedOnce) {
  std::mt19937 generator(4);
  OpContext context(2);
  for (const int64_t columns : {1, 7, 1024, 9001}) {
    for (const int64_t rows : {0, 1, 5}) {
      const Matrix x = Matrix::random(generator, rows, columns, columns + 1);
      Matrix out = Matrix::random(generator, rows, columns, columns + 2);
      const Matrix before = out;
      accumulate(context, out.view(), x.view());
      EXPECT_TRUE(out.gaps_untouched());
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t i = 0; i < columns; ++i) {
          const double sum = static_cast<double>(before.row(r)[i]) + static_cast<double>(x.row(r)[i]);
          ASSERT_EQ(out.row(r)[i], static_cast<float>(sum));
        }
      }
    }
  }
}

TEST(SigmoidMul, MatchesTheReferenceAlsoInPlace) {
  std::mt19937 generator(5);
  OpContext context(2);
  for (const int64_t columns : {1, 7, 256, 4097}) {
    for (const int64_t rows : {0, 1, 5}) {
      const Matrix gate = Matrix::random(generator, rows, columns, columns + 1);
      Matrix x = Matrix::random(generator, rows, columns, columns + 3);
      Matrix out(rows, columns, columns + 2);
      sigmoid_mul(context, out.view(), gate.view(), x.view());
      EXPECT_TRUE(out.gaps_untouched());
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t i = 0; i < columns; ++i) {
          const double expected = reference_sigmoid(gate.row(r)[i]) * static_cast<double>(x.row(r)[i]);
          ASSERT_NEAR(static_cast<double>(out.row(r)[i]), expected, 1e-6 * std::abs(expected));
        }
      }
      sigmoid_mul(context, x.view(), gate.view(), x.view());
      EXPECT_TRUE(x.gaps_untouched());
      EXPECT_TRUE(same_bits(x, out));
    }
  }
}

TEST(SigmoidMul, ExtremeGates) {
  OpContext context;
  Matrix gate(1, 5);
  Matrix x(1, 5);
  std::copy_n(std::vector<float>{-1e30f, -200.0f, 0.0f, 200.0f, 1e30f}.data(), 5, gate.row(0));
  std::fill_n(x.row(0), 5, 3.0f);
  Matrix out(1, 5);
  sigmoid_mul(context, out.view(), gate.view(), x.view());
  const float expected[] = {0.0f, 0.0f, 1.5f, 3.0f, 3.0f};
  for (int64_t i = 0; i < 5; ++i) EXPECT_EQ(out.row(0)[i], expected[i]) << i;
}

// Several steps, so that an error in the state would show in the next ones.
TEST(GatedRecurrence, MatchesTheReferenceOverSeveralSteps) {
  std::mt19937 generator(6);
  OpContext context(2);
  for (const int64_t columns : {1, 7, 256, 1500}) {
    for (const int64_t rows : {0, 1, 5}) {
      Matrix state(rows, columns, columns + 1);
      for (int64_t r = 0; r < rows; ++r) std::fill_n(state.row(r), columns, 0.0f);
      std::vector<double> expected(static_cast<size_t>(rows * columns), 0.0);
      for (int step = 0; step < 7; ++step) {
        const Matrix joint = Matrix::random(generator, rows, 3 * columns, 3 * columns + 2);
        Matrix out(rows, columns, columns + 4);
        gated_recurrence(context, state.view(), out.view(), joint.view());
        EXPECT_TRUE(state.gaps_untouched() && out.gaps_untouched());
        for (int64_t r = 0; r < rows; ++r) {
          for (int64_t i = 0; i < columns; ++i) {
            const double keep = reference_sigmoid(joint.row(r)[i]);
            double& s = expected[static_cast<size_t>(r * columns + i)];
            s = keep * s + (1.0 - keep) * std::tanh(static_cast<double>(joint.row(r)[columns + i]));
            ASSERT_NEAR(static_cast<double>(state.row(r)[i]), s, 1e-6);
            const double output = std::tanh(static_cast<double>(joint.row(r)[2 * columns + i]));
            ASSERT_NEAR(static_cast<double>(out.row(r)[i]), output, 1e-6 * std::abs(output));
          }
        }
      }
    }
  }
}

TEST(GatedRecurrence, AnOpenGateKeepsTheStateAndAClosedOneReplacesIt) {
  OpContext context;
  Matrix joint(1, 6);
  std::copy_n(std::vector<float>{200.0f, -200.0f, 50.0f, 50.0f, 0.0f, -50.0f}.data(), 6, joint.row(0));
  Matrix state(1, 2);
  std::fill_n(state.row(0), 2, 0.625f);
  Matrix out(1, 2);
  gated_recurrence(context, state.view(), out.view(), joint.view());
  EXPECT_EQ(state.row(0)[0], 0.625f);
  EXPECT_EQ(state.row(0)[1], 1.0f);
  EXPECT_EQ(out.row(0)[0], 0.0f);
  EXPECT_EQ(out.row(0)[1], -1.0f);
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

// Drafting requests come and go, so each op must give a row the same bits whatever else is in the batch.
TEST(Activation, BitsOfTheHeadsOpsDoNotDependOnRowsPositionCompanionsOrThreads) {
  std::mt19937 generator(7);
  OpContext one(1);
  const Matrix joint = Matrix::random(generator, 1, 900);
  const Matrix state = Matrix::random(generator, 1, 300);
  Matrix next = state;
  Matrix expected(1, 300);
  gated_recurrence(one, next.view(), expected.view(), joint.view());
  Matrix gated(1, 300);
  sigmoid_mul(one, gated.view(), state.view(), expected.view());
  Matrix sum = gated;
  accumulate(one, sum.view(), next.view());
  for (int num_threads = 1; num_threads <= 4; ++num_threads) {
    OpContext context(num_threads);
    for (int64_t rows = 1; rows <= 64; ++rows) {
      const int64_t at = static_cast<int64_t>(generator()) % rows;
      Matrix joints = Matrix::random(generator, rows, 900);
      Matrix states = Matrix::random(generator, rows, 300);
      std::copy_n(joint.row(0), 900, joints.row(at));
      std::copy_n(state.row(0), 300, states.row(at));
      const Matrix gates = states;
      Matrix out(rows, 300);
      gated_recurrence(context, states.view(), out.view(), joints.view());
      ASSERT_TRUE(same_bits(states.row(at), next.row(0), 300));
      ASSERT_TRUE(same_bits(out.row(at), expected.row(0), 300));
      sigmoid_mul(context, out.view(), gates.view(), out.view());
      ASSERT_TRUE(same_bits(out.row(at), gated.row(0), 300));
      accumulate(context, out.view(), states.view());
      ASSERT_TRUE(same_bits(out.row(at), sum.row(0), 300));
    }
  }
}

}  // namespace
}  // namespace blockdraft
