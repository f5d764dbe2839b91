#include "ops/rms_norm.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "support/op_context.h"
#include "support/reference_ops.h"

namespace blockdraft {
namespace {

using test::Matrix;
using test::OpContext;
using test::same_bits;

ConstTensorView vector_of(const Matrix& matrix) { return view_f32(matrix.row(0), Shape{matrix.columns()}); }

void expect_near_reference(const Matrix& out, const Matrix& x, const Matrix& weight, float eps) {
  const int64_t dim = weight.columns();
  for (int64_t r = 0; r < x.rows(); ++r) {
    for (int64_t first = 0; first < x.columns(); first += dim) {
      const auto expected = test::reference_rms_norm(x.row(r) + first, weight.row(0), dim, static_cast<double>(eps));
      for (int64_t i = 0; i < dim; ++i) {
        const double value = expected[static_cast<size_t>(i)];
        ASSERT_NEAR(static_cast<double>(out.row(r)[first + i]), value, 1e-6 * std::abs(value)) << dim;
      }
    }
  }
}

TEST(RmsNorm, MatchesTheReference) {
  std::mt19937 generator(1);
  OpContext context(2);
  for (const int64_t dim : {1, 2, 7, 8, 64, 100, 4097}) {
    for (const int64_t groups : {1, 3}) {
      for (const int64_t rows : {0, 1, 17}) {
        const Matrix x = Matrix::random(generator, rows, groups * dim, groups * dim + 5);
        const Matrix weight = Matrix::random(generator, 1, dim);
        Matrix out(rows, groups * dim, groups * dim + 3);
        rms_norm(context, out.view(), x.view(), vector_of(weight), 1e-6f);
        expect_near_reference(out, x, weight, 1e-6f);
        EXPECT_TRUE(out.gaps_untouched());
      }
    }
  }
}

TEST(RmsNorm, ZerosAndTinyValuesAreGovernedByEps) {
  OpContext context;
  Matrix x(2, 16);
  std::fill_n(x.row(0), 16, 0.0f);
  std::fill_n(x.row(1), 16, 1e-3f);
  Matrix weight(1, 16);
  std::fill_n(weight.row(0), 16, 2.0f);
  Matrix out(2, 16);
  rms_norm(context, out.view(), x.view(), vector_of(weight), 1e-5f);
  for (int64_t i = 0; i < 16; ++i) EXPECT_EQ(out.row(0)[i], 0.0f);
  expect_near_reference(out, x, weight, 1e-5f);
}

TEST(RmsNorm, InPlace) {
  std::mt19937 generator(2);
  OpContext context;
  Matrix x = Matrix::random(generator, 5, 96);
  const Matrix weight = Matrix::random(generator, 1, 32);
  Matrix out(5, 96);
  rms_norm(context, out.view(), x.view(), vector_of(weight), 1e-6f);
  rms_norm(context, x.view(), x.view(), vector_of(weight), 1e-6f);
  EXPECT_TRUE(same_bits(x, out));
}

TEST(RmsNorm, BitsDoNotDependOnRowsPositionCompanionsOrThreads) {
  std::mt19937 generator(3);
  const Matrix weight = Matrix::random(generator, 1, 1030);
  const Matrix probe = Matrix::random(generator, 1, 1030);
  OpContext one(1);
  Matrix expected(1, 1030);
  rms_norm(one, expected.view(), probe.view(), vector_of(weight), 1e-6f);
  for (int num_threads = 1; num_threads <= 4; ++num_threads) {
    OpContext context(num_threads);
    for (int64_t rows = 1; rows <= 64; ++rows) {
      Matrix x = Matrix::random(generator, rows, 1030);
      const int64_t at = static_cast<int64_t>(generator()) % rows;
      std::copy_n(probe.row(0), 1030, x.row(at));
      Matrix out(rows, 1030);
      rms_norm(context, out.view(), x.view(), vector_of(weight), 1e-6f);
      ASSERT_TRUE(same_bits(out.row(at), expected.row(0), 1030));
    }
  }
}

TEST(RmsNorm, GroupsAreNormedAsIfAlone) {
  std::mt19937 generator(4);
  OpContext context;
  const Matrix weight = Matrix::random(generator, 1, 64);
  const Matrix x = Matrix::random(generator, 1, 64 * 6);
  Matrix out(1, 64 * 6);
  rms_norm(context, out.view(), x.view(), vector_of(weight), 1e-6f);
  for (int64_t group = 0; group < 6; ++group) {
    Matrix alone(1, 64);
    rms_norm(context, alone.view(), view_f32(x.row(0) + group * 64, Shape{1, 64}), vector_of(weight), 1e-6f);
    EXPECT_TRUE(same_bits(alone.row(0), out.row(0) + group * 64, 64));
  }
}

TEST(RmsNormDeathTest, Bf16IsForCards) {
  OpContext context;
  const Matrix x(1, 64);
  const Matrix weight(1, 64);
  Matrix result(1, 64);
  TensorView out = result.view();
  out.dtype = DType::bf16;
  EXPECT_DEATH(rms_norm(context, out, x.view(), vector_of(weight), 1e-6f), "is_activation_matrix");
}

}  // namespace
}  // namespace blockdraft
