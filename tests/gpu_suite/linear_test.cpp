// The products of a card against those of the CPU.
#include "ops/linear.h"

#include <gtest/gtest.h>

#include "gpu_suite/card.h"
#include "ops/argmax.h"
#include "ops/linear_argmax.h"
#include "ops/linear_silu_mul.h"
#include "support/stored_weight.h"

namespace blockdraft {
namespace {

using test::Format;
using test::Matrix;
using test::OnCard;
using test::same_bits;
using test::StoredWeight;

// BF16 inputs of a product are within 2^-9 of the float32 ones; products with float32 inputs are far closer.
constexpr double kTolerance = 1e-2;

Matrix run_linear(OnCard& on, const WeightView& weight, const Matrix& x) {
  const TensorView out = on.upload(Matrix(x.rows(), weight.out_features, weight.out_features + 5));
  linear(on.card(), {.out = out, .x = on.upload(x), .weights = {&weight, 1}});
  return on.download(out);
}

TEST(Linear, MatchesTheCpuForEveryFormat) {
  std::mt19937 generator(1);
  for (const Format format : test::kFormats) {
    for (const auto& [n, k] : {std::pair(130, 64), std::pair(48, 256), std::pair(257, 512)}) {
      for (const int rows : {1, 5, 16, 33}) {
        OnCard on;
        const StoredWeight weight(generator, format, n, k, true);
        const Matrix x = Matrix::random(generator, rows, k, k + 4);
        Matrix expected(rows, n);
        linear(on.cpu(), {.out = expected.view(), .x = x.view(), .weights = {&weight.view(), 1}});
        const Matrix found = run_linear(on, on.upload(weight.view()), x);
        EXPECT_TRUE(found.gaps_untouched());
        EXPECT_LT(test::relative_error(found, expected), kTolerance) << n << " x " << k << ", rows " << rows;
      }
    }
  }
}

TEST(Linear, ARowHasTheSameBitsAloneAndAmongOthers) {
  std::mt19937 generator(2);
  for (const Format format : test::kFormats) {
    OnCard on;
    const StoredWeight weight(generator, format, 200, 256);
    const WeightView uploaded = on.upload(weight.view());
    const Matrix x = Matrix::random(generator, 70, 256);
    const Matrix together = run_linear(on, uploaded, x);
    for (const int row : {0, 1, 15, 16, 63, 69}) {
      Matrix one(1, 256);
      std::copy_n(x.row(row), 256, one.row(0));
      const Matrix alone = run_linear(on, uploaded, one);
      ASSERT_TRUE(same_bits(alone.row(0), together.row(row), 200)) << "row " << row;
    }
  }
}

TEST(LinearArgmax, ChoosesWhatTheProductSays) {
  std::mt19937 generator(3);
  for (const Format format : test::kFormats) {
    OnCard on;
    const StoredWeight weight(generator, format, 1003, 128);
    const WeightView uploaded = on.upload(weight.view());
    const Matrix x = Matrix::random(generator, 21, 128);
    const Matrix logits = run_linear(on, uploaded, x);
    std::vector<int32_t> expected(21);
    argmax(on.cpu(), expected.data(), logits.view(), 900);
    int32_t* ids = on.poisoned_i32(21);
    linear_argmax(on.card(), {.ids = ids, .x = on.upload(x), .weight = uploaded, .num_choices = 900});
    EXPECT_EQ(on.download(ids, 21), expected);
  }
}

TEST(LinearSiluMul, MatchesTheCpu) {
  std::mt19937 generator(4);
  for (const Format format : test::kFormats) {
    OnCard on;
    const StoredWeight gate(generator, format, 96, 128);
    const StoredWeight up(generator, format, 96, 128);
    const Matrix x = Matrix::random(generator, 19, 128);
    Matrix expected(19, 96);
    linear_silu_mul(on.cpu(), {.out = expected.view(), .x = x.view(), .gate = gate.view(), .up = up.view()});
    const TensorView out = on.upload(Matrix(19, 96));
    const WeightView gate_on_card = on.upload(gate.view());
    const WeightView up_on_card = on.upload(up.view());
    linear_silu_mul(on.card(), {.out = out, .x = on.upload(x), .gate = gate_on_card, .up = up_on_card});
    EXPECT_LT(test::relative_error(on.download(out), expected), kTolerance);
  }
}

}  // namespace
}  // namespace blockdraft
