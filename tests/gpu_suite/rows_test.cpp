// Ops that treat each row by itself: the card against the CPU, and a row alone against the same row among others.
#include <functional>

#include <gtest/gtest.h>

#include "gpu_suite/card.h"
#include "ops/activation.h"
#include "ops/copy_rows.h"
#include "ops/embedding.h"
#include "ops/rms_norm.h"
#include "ops/rope.h"
#include "support/stored_weight.h"

namespace blockdraft {
namespace {

using test::Matrix;
using test::OnCard;
using test::relative_error;
using test::same_bits;

constexpr double kTolerance = 2e-6;

Matrix row_of(const Matrix& matrix, int64_t row) {
  Matrix one(1, matrix.columns());
  std::copy_n(matrix.row(row), matrix.columns(), one.row(0));
  return one;
}

// `op` makes rows of `out_columns` out of rows of x, on the backend of the context.
using RowOp = std::function<void(Context&, TensorView out, ConstTensorView x)>;

Matrix run_on_card(OnCard& on, const RowOp& op, const Matrix& x, int64_t out_columns, int64_t out_stride) {
  const TensorView out = on.upload(Matrix(x.rows(), out_columns, out_stride));
  op(on.card(), out, on.upload(x));
  return on.download(out);
}

// Strides that allow vectors and strides that do not give the same bits, too.
void expect_like_the_cpu(OnCard& on, const RowOp& cpu, const RowOp& card, const Matrix& x, int64_t out_columns) {
  Matrix expected(x.rows(), out_columns);
  cpu(on.cpu(), expected.view(), x.view());
  const Matrix found = run_on_card(on, card, x, out_columns, out_columns + 3);
  EXPECT_TRUE(found.gaps_untouched());
  EXPECT_LT(relative_error(found, expected), kTolerance);
  EXPECT_TRUE(same_bits(run_on_card(on, card, x, out_columns, out_columns), found));
  for (const int64_t row : {int64_t{0}, x.rows() / 2, x.rows() - 1}) {
    const Matrix alone = run_on_card(on, card, row_of(x, row), out_columns, out_columns);
    ASSERT_TRUE(same_bits(alone.row(0), found.row(row), out_columns)) << "row " << row;
  }
}

TEST(RmsNorm, WholeRowsAndHeads) {
  std::mt19937 generator(1);
  OnCard on;
  for (const auto& [groups, dim] :
       {std::pair(1, 4096), std::pair(1, 2560), std::pair(1, 2048), std::pair(1, 5120), std::pair(1, 8192),
        std::pair(1, 12288), std::pair(3, 640), std::pair(1, 770), std::pair(1, 33), std::pair(8, 128),
        std::pair(3, 64), std::pair(2, 256), std::pair(1, 1)}) {
    for (const int rows : {1, 5, 16}) {
      const Matrix weight = Matrix::random(generator, 1, dim);
      const auto view = [dim = dim](const float* data) { return view_f32(data, Shape{dim}); };
      const float* weight_on_card = on.upload(weight).f32();
      expect_like_the_cpu(
          on, [&](Context& c, TensorView out, ConstTensorView x) { rms_norm(c, out, x, view(weight.row(0)), 1e-6f); },
          [&](Context& c, TensorView out, ConstTensorView x) { rms_norm(c, out, x, view(weight_on_card), 1e-6f); },
          Matrix::random(generator, rows, groups * dim), groups * dim);
    }
  }
}

TEST(RmsNorm, InPlace) {
  std::mt19937 generator(2);
  OnCard on;
  const Matrix x = Matrix::random(generator, 7, 1024, 1028);
  const Matrix weight = Matrix::random(generator, 1, 1024);
  const ConstTensorView weight_on_card = view_f32(on.upload(weight).f32(), Shape{1024});
  const TensorView out = on.upload(Matrix(7, 1024));
  const TensorView in_place = on.upload(x);
  rms_norm(on.card(), out, in_place, weight_on_card, 1e-5f);
  rms_norm(on.card(), in_place, in_place, weight_on_card, 1e-5f);
  EXPECT_TRUE(same_bits(on.download(out), on.download(in_place)));
}

TEST(Activation, MatchesTheCpu) {
  std::mt19937 generator(3);
  OnCard on;
  const RowOp silu = [](Context& c, TensorView out, ConstTensorView x) { silu_mul(c, out, x); };
  for (const int columns : {1, 255, 3072}) {
    expect_like_the_cpu(on, silu, silu, Matrix::random(generator, 9, 2 * columns), columns);
    for (const auto& [multiplier, softcap] : {std::pair(0.5f, 0.0f), std::pair(1.0f, 2.0f), std::pair(3.0f, 30.0f)}) {
      const RowOp softcap_op = [m = multiplier, s = softcap](Context& c, TensorView out, ConstTensorView x) {
        copy_rows(c, out, x, nullptr);
        scale_softcap(c, out, m, s);
      };
      expect_like_the_cpu(on, softcap_op, softcap_op, Matrix::random(generator, 9, columns), columns);
    }
  }
}

TEST(Activation, AccumulateAndGatesMatchTheCpu) {
  std::mt19937 generator(4);
  OnCard on;
  for (const int columns : {1, 300, 1024}) {
    const RowOp twice = [](Context& c, TensorView out, ConstTensorView x) {
      copy_rows(c, out, x, nullptr);
      accumulate(c, out, x);
    };
    expect_like_the_cpu(on, twice, twice, Matrix::random(generator, 6, columns), columns);
    const RowOp gate = [columns](Context& c, TensorView out, ConstTensorView x) {
      ConstTensorView right = x;
      right.data = x.f32() + columns;
      right.shape = ConstTensorView(out).shape;
      ConstTensorView left = right;
      left.data = x.data;
      sigmoid_mul(c, out, left, right);
    };
    expect_like_the_cpu(on, gate, gate, Matrix::random(generator, 6, 2 * columns), columns);
    // Two steps of the recurrence from a state that is the first step's output.
    const RowOp recurrence = [columns](Context& c, TensorView out, ConstTensorView x) {
      const TensorView state = columns_of(out, 0, columns);
      const TensorView output = columns_of(out, columns, columns);
      ConstTensorView first = x;
      first.shape = Shape{x.dim(0), columns};
      ConstTensorView joint = x;
      joint.data = x.f32() + columns;
      joint.shape = Shape{x.dim(0), 3 * columns};
      copy_rows(c, state, first, nullptr);
      gated_recurrence(c, state, output, joint);
      gated_recurrence(c, state, output, joint);
    };
    expect_like_the_cpu(on, recurrence, recurrence, Matrix::random(generator, 6, 4 * columns), 2 * columns);
  }
}

TEST(Rope, TableAndRotation) {
  std::mt19937 generator(5);
  OnCard on;
  for (const int half : {32, 64, 128}) {
    const std::vector<int32_t> positions{0, 1, 17, 4095, 131071, 3};
    std::vector<float> inv_freq;
    for (int i = 0; i < half; ++i) {
      inv_freq.push_back(std::pow(1e6f, -static_cast<float>(i) / static_cast<float>(half)));
    }
    Matrix table(6, 2 * half);
    rope_table(on.cpu(), table.view(), positions.data(), view_f32(inv_freq.data(), Shape{half}), 1.25f);
    const TensorView table_on_card = on.upload(Matrix(6, 2 * half, 2 * half + 1));
    rope_table(on.card(), table_on_card, on.upload(positions), view_f32(on.upload(inv_freq), Shape{half}), 1.25f);
    const Matrix found = on.download(table_on_card);
    EXPECT_TRUE(found.gaps_untouched());
    EXPECT_LT(relative_error(found, table), kTolerance);

    // The same table on both, so that the rotation is what is compared: bit for bit.
    Matrix x = Matrix::random(generator, 6, 3 * 2 * half, 3 * 2 * half + 1);
    const TensorView x_on_card = on.upload(x);
    rope(on.card(), x_on_card, on.upload(table));
    rope(on.cpu(), x.view(), table.view());
    EXPECT_TRUE(same_bits(on.download(x_on_card), x));
  }
}

TEST(Embedding, RowsOfEveryFormat) {
  std::mt19937 generator(6);
  for (const test::Format format : test::kFormats) {
    for (const float scale : {1.0f, 3.5f}) {
      OnCard on;
      const test::StoredWeight table(generator, format, 90, test::columns_for(format, 320));
      const int64_t columns = table.view().in_features;
      const std::vector<int32_t> ids{0, 89, 17, 17, 45};
      Matrix expected(5, columns);
      embedding(on.cpu(), expected.view(), ids.data(), table.view(), scale);
      const TensorView out = on.upload(Matrix(5, columns, columns + 2));
      embedding(on.card(), out, on.upload(ids), on.upload(table.view()), scale);
      const Matrix found = on.download(out);
      EXPECT_TRUE(found.gaps_untouched());
      EXPECT_TRUE(same_bits(found, expected)) << name_of(format);
    }
  }
}

TEST(Embedding, AnIdOutsideTheTableGivesNaN) {
  std::mt19937 generator(7);
  OnCard on;
  const test::StoredWeight table(generator, test::Format::bf16, 10, 64);
  const TensorView out = on.upload(Matrix::random(generator, 3, 64));
  embedding(on.card(), out, on.upload(std::vector<int32_t>{-1, 10, 3}), on.upload(table.view()), 1.0f);
  const Matrix found = on.download(out);
  for (int64_t c = 0; c < 64; ++c) {
    EXPECT_TRUE(std::isnan(found.row(0)[c]) && std::isnan(found.row(1)[c]) && !std::isnan(found.row(2)[c]));
  }
}

TEST(CopyRows, ByIndexAndInOrder) {
  std::mt19937 generator(8);
  OnCard on;
  const Matrix x = Matrix::random(generator, 20, 770, 771);
  const std::vector<int32_t> index{19, 0, 7, 7};
  for (const bool by_index : {true, false}) {
    Matrix expected(4, 770);
    copy_rows(on.cpu(), expected.view(), x.view(), by_index ? index.data() : nullptr);
    const TensorView out = on.upload(Matrix(4, 770, 800));
    copy_rows(on.card(), out, on.upload(x), by_index ? on.upload(index) : nullptr);
    const Matrix found = on.download(out);
    EXPECT_TRUE(found.gaps_untouched());
    EXPECT_TRUE(same_bits(found, expected));
  }
}

}  // namespace
}  // namespace blockdraft
