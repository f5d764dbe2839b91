#include "ops/linear.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include <gtest/gtest.h>

#include "ops/activation.h"
#include "ops/argmax.h"
#include "ops/cpu/int8_rows.h"
#include "ops/linear_argmax.h"
#include "ops/linear_silu_mul.h"
#include "support/op_context.h"
#include "support/reference_ops.h"
#include "support/stored_weight.h"

namespace blockdraft {
namespace {

using test::columns_for;
using test::Format;
using test::Matrix;
using test::OpContext;
using test::reference_dot;
using test::same_bits;
using test::StoredWeight;

// What a product with an int8 weight makes of x.
Matrix as_int8(const Matrix& x) {
  Matrix rounded(x.rows(), x.columns());
  for (int64_t r = 0; r < x.rows(); ++r) {
    for (int64_t first = 0; first < x.columns(); first += kInt8Group) {
      const float* group = x.row(r) + first;
      float largest = 0;
      for (int64_t k = 0; k < kInt8Group; ++k) largest = std::max(largest, std::abs(group[k]));
      const float scale = largest / 127;
      for (int64_t k = 0; k < kInt8Group; ++k) {
        rounded.row(r)[first + k] = scale == 0 ? 0 : scale * std::nearbyint(group[k] / scale);
      }
    }
  }
  return rounded;
}

// Whether the instruction set under test rounds x to BF16 for this weight (ops/linear.h).
bool rounds_input(const WeightView& weight) {
  return test::isa_under_test() == CpuIsa::avx512_bf16 && weight.dtype != DType::f32 && weight.dtype != DType::f16 &&
         weight.dtype != DType::i8;
}

Matrix rounded_to_bf16(Matrix x) {
  for (int64_t r = 0; r < x.rows(); ++r) {
    for (int64_t k = 0; k < x.columns(); ++k) x.row(r)[k] = float_from_bf16(bf16_from_float(x.row(r)[k]));
  }
  return x;
}

// The largest error of out in units of the sum of absolute products; what a float32 sum may have is about 1e-6.
void expect_near_reference(const Matrix& out, const Matrix& input, const StoredWeight& weight,
                           int64_t first_column = 0) {
  const WeightView& view = weight.view();
  const bool rounds = rounds_input(view);
  const Matrix x = view.dtype == DType::i8 ? as_int8(input) : rounds ? rounded_to_bf16(input) : input;
  // Products may round to multiples of the least number; with BF16 a subnormal factor counts as zero.
  const double subnormal = (rounds ? 1e-37 : 1.5e-45) * static_cast<double>(view.in_features);
  for (int64_t n = 0; n < view.out_features; ++n) {
    const std::vector<double> row = weight.row(n);
    const double bias = view.bias == nullptr ? 0.0 : static_cast<double>(view.bias[n]);
    for (int64_t r = 0; r < x.rows(); ++r) {
      const auto expected = reference_dot(x.row(r), row.data(), view.in_features);
      const double value = static_cast<double>(out.row(r)[first_column + n]);
      ASSERT_NEAR(value, expected.value + bias, 2e-6 * (expected.magnitude + std::abs(bias)) + subnormal)
          << "row " << r << ", feature " << n << ", K " << view.in_features << ", " << blockdraft::name_of(view.dtype);
    }
  }
}

Matrix run(Context& context, const Matrix& x, const WeightView& weight) {
  Matrix out(x.rows(), weight.out_features);
  linear(context, {.out = out.view(), .x = x.view(), .weights = {&weight, 1}});
  return out;
}

class LinearOfFormat : public ::testing::TestWithParam<Format> {};
INSTANTIATE_TEST_SUITE_P(Linear, LinearOfFormat, ::testing::ValuesIn(test::kFormats),
                         [](const auto& instance) { return test::name_of(instance.param); });

// With other instruction sets there are no products with these.
std::vector<Format> packed_formats() {
  if (test::isa_under_test() < CpuIsa::avx512_bf16) return {};
  return {test::kPackedFormats.begin(), test::kPackedFormats.end()};
}
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(LinearOfFormat);
INSTANTIATE_TEST_SUITE_P(LinearPacked, LinearOfFormat, ::testing::ValuesIn(packed_formats()),
                         [](const auto& instance) { return test::name_of(instance.param); });

TEST_P(LinearOfFormat, MatchesTheReferenceAtOddSizes) {
  std::mt19937 generator(1);
  OpContext context(2);
  for (const int64_t size : {1, 7, 8, 16, 100, 129, 511, 512, 513, 1025, 4097}) {
    const int64_t in_features = columns_for(GetParam(), size);
    for (const int64_t out_features : {1, 3, 16, 65}) {
      const StoredWeight weight(generator, GetParam(), out_features, in_features, out_features == 3);
      for (const int64_t rows : {0, 1, 2, 3, 17, 64}) {
        if (in_features > 1000 && rows > 3) continue;  // the reference is slow; large K and large M are covered apart
        const Matrix x = Matrix::random(generator, rows, in_features);
        expect_near_reference(run(context, x, weight.view()), x, weight);
      }
    }
  }
}

TEST_P(LinearOfFormat, LargeInBothDirections) {
  std::mt19937 generator(2);
  OpContext context(3);
  const int64_t in_features = columns_for(GetParam(), 4097);
  const StoredWeight weight(generator, GetParam(), 133, in_features);
  const Matrix x = Matrix::random(generator, 33, in_features);
  expect_near_reference(run(context, x, weight.view()), x, weight);
}

TEST_P(LinearOfFormat, ReadsUnalignedBytes) {
  for (const size_t misalignment : {1, 2, 3, 5, 15}) {
    std::mt19937 generator(3);
    const int64_t in_features = columns_for(GetParam(), 77);
    StoredWeight aligned(generator, GetParam(), 9, in_features);
    generator.seed(3);
    const StoredWeight unaligned(generator, GetParam(), 9, in_features, false, misalignment);
    OpContext context;
    const Matrix x = Matrix::random(generator, 3, in_features);
    EXPECT_TRUE(same_bits(run(context, x, aligned.view()), run(context, x, unaligned.view())));
  }
}

TEST_P(LinearOfFormat, RowStridesOfInputAndOutput) {
  std::mt19937 generator(4);
  OpContext context(2);
  const int64_t in_features = columns_for(GetParam(), 50);
  const StoredWeight weight(generator, GetParam(), 21, in_features);
  const Matrix x = Matrix::random(generator, 7, in_features, in_features + 3);
  Matrix out(7, 21, 33);
  linear(context, {.out = out.view(), .x = x.view(), .weights = {&weight.view(), 1}});
  expect_near_reference(out, x, weight);
  EXPECT_TRUE(out.gaps_untouched());
}

TEST_P(LinearOfFormat, StackedWeightsAreSeparateCallsToTheBit) {
  std::mt19937 generator(5);
  OpContext context(2);
  const int64_t in_features = columns_for(GetParam(), 100);
  const StoredWeight q(generator, GetParam(), 65, in_features, true);
  const StoredWeight k(generator, Format::bf16, 3, in_features);
  const StoredWeight v(generator, GetParam(), 16, in_features);
  const std::array stack{q.view(), k.view(), v.view()};
  for (const int64_t rows : {1, 5}) {
    const Matrix x = Matrix::random(generator, rows, in_features);
    Matrix out(rows, 84);
    linear(context, {.out = out.view(), .x = x.view(), .weights = stack});
    int64_t column = 0;
    for (const WeightView& weight : stack) {
      const Matrix alone = run(context, x, weight);
      for (int64_t r = 0; r < rows; ++r) EXPECT_TRUE(same_bits(out.row(r) + column, alone.row(r), weight.out_features));
      column += weight.out_features;
    }
  }
}

TEST_P(LinearOfFormat, AccumulateAddsTheFinishedValue) {
  std::mt19937 generator(6);
  OpContext context(2);
  const int64_t in_features = columns_for(GetParam(), 40);
  const StoredWeight weight(generator, GetParam(), 19, in_features, true);
  const Matrix x = Matrix::random(generator, 5, in_features);
  const Matrix before = Matrix::random(generator, 5, 19);
  const Matrix product = run(context, x, weight.view());
  Matrix out = before;
  linear(context, {.out = out.view(), .x = x.view(), .weights = {&weight.view(), 1}, .accumulate = true});
  for (int64_t r = 0; r < 5; ++r) {
    for (int64_t n = 0; n < 19; ++n) EXPECT_EQ(out.row(r)[n], before.row(r)[n] + product.row(r)[n]);
  }
}

// Design D1: the bits of a row depend on the row and the weight alone.
TEST_P(LinearOfFormat, BitsDoNotDependOnRowsPositionCompanionsOrThreads) {
  std::mt19937 generator(7);
  OpContext one(1);
  for (const int64_t size : {7, 100, 1030}) {
    const int64_t in_features = columns_for(GetParam(), size);
    const StoredWeight weight(generator, GetParam(), 37, in_features, true);
    const Matrix probe = Matrix::random(generator, 1, in_features);
    const Matrix expected = run(one, probe, weight.view());
    for (int num_threads = 1; num_threads <= 4; ++num_threads) {
      OpContext context(num_threads);
      for (int64_t rows = 1; rows <= 64; ++rows) {
        Matrix x = Matrix::random(generator, rows, in_features);
        const int64_t at = static_cast<int64_t>(generator()) % rows;
        std::copy_n(probe.row(0), in_features, x.row(at));
        if (rows > 1) std::fill_n(x.row((at + 1) % rows), in_features, std::nanf(""));
        const Matrix out = run(context, x, weight.view());
        ASSERT_TRUE(same_bits(out.row(at), expected.row(0), 37)) << rows << " rows, " << num_threads << " threads";
      }
    }
  }
}

TEST_P(LinearOfFormat, EveryRowHasTheBitsOfTheRowAlone) {
  std::mt19937 generator(8);
  OpContext context(2);
  const int64_t in_features = columns_for(GetParam(), 129);
  const StoredWeight weight(generator, GetParam(), 33, in_features);
  const Matrix x = Matrix::random(generator, 64, in_features);
  const Matrix together = run(context, x, weight.view());
  for (int64_t r = 0; r < 64; ++r) {
    Matrix alone(1, in_features);
    std::copy_n(x.row(r), in_features, alone.row(0));
    EXPECT_TRUE(same_bits(run(context, alone, weight.view()).row(0), together.row(r), 33)) << r;
  }
}

// Kernels pass hundreds of rows in blocks, whose last one may be of any size.
TEST_P(LinearOfFormat, ManyRowsHaveTheBitsOfTheRowAlone) {
  std::mt19937 generator(18);
  OpContext context(2);
  const int64_t in_features = columns_for(GetParam(), 300);
  const StoredWeight weight(generator, GetParam(), 100, in_features);
  for (const int64_t rows : {255, 256, 257, 264, 269, 272, 281, 300}) {
    const Matrix x = Matrix::random(generator, rows, in_features);
    const Matrix together = run(context, x, weight.view());
    for (const int64_t r : {int64_t{0}, int64_t{254}, rows - 1}) {
      Matrix alone(1, in_features);
      std::copy_n(x.row(r), in_features, alone.row(0));
      EXPECT_TRUE(same_bits(run(context, alone, weight.view()).row(0), together.row(r), 100)) << r << " of " << rows;
    }
  }
}

TEST_P(LinearOfFormat, SiluMulIsTheTwoOpsToTheBit) {
  std::mt19937 generator(14);
  const int64_t in_features = columns_for(GetParam(), 100);
  const StoredWeight gate(generator, GetParam(), 150, in_features, true);
  const StoredWeight up(generator, Format::bf16, 150, in_features);
  const std::array stack{gate.view(), up.view()};
  for (const int threads : {1, 3}) {
    for (const int64_t rows : {0, 1, 3, 16, 64, 300}) {
      OpContext context(threads);
      const Matrix x = Matrix::random(generator, rows, in_features, in_features + 1);
      Matrix gate_up(rows, 300);
      Matrix expected(rows, 150);
      linear(context, {.out = gate_up.view(), .x = x.view(), .weights = stack});
      silu_mul(context, expected.view(), gate_up.view());
      Matrix out(rows, 150, 153);
      linear_silu_mul(context, {.out = out.view(), .x = x.view(), .gate = gate.view(), .up = up.view()});
      EXPECT_TRUE(same_bits(out, expected)) << rows << " rows, " << threads << " threads";
      EXPECT_TRUE(out.gaps_untouched());
      EXPECT_EQ(context->arena->used_bytes(), 0u);
      EXPECT_LE(context->arena->peak_bytes(), linear_scratch_bytes(rows, in_features));
    }
  }
}

TEST_P(LinearOfFormat, ArgmaxIsTheTwoOpsToTheBit) {
  std::mt19937 generator(15);
  const int64_t in_features = columns_for(GetParam(), 48);
  const StoredWeight weight(generator, GetParam(), 1501, in_features);
  for (const int threads : {1, 3}) {
    for (const int64_t rows : {0, 1, 9, 64, 70}) {
      for (const int64_t num_choices : {1, 500, 1501}) {
        OpContext context(threads);
        const Matrix x = Matrix::random(generator, rows, in_features);
        std::vector<int32_t> ids(static_cast<size_t>(rows)), expected = ids;
        linear_argmax(context, {.ids = ids.data(), .x = x.view(), .weight = weight.view(), .num_choices = num_choices});
        EXPECT_LE(context->arena->peak_bytes(), linear_argmax_scratch_bytes(rows, in_features));
        argmax(context, expected.data(), run(context, x, weight.view()).view(), num_choices);
        EXPECT_EQ(ids, expected) << rows << " rows, " << threads << " threads, " << num_choices << " choices";
      }
    }
  }
}

// ops/cpu/int8_rows.h: what has no scale.
TEST(Linear, Int8ActivationsThatAreNotFiniteOrTooSmall) {
  std::mt19937 generator(16);
  const StoredWeight weight(generator, Format::int8, 20, 96);
  OpContext context;
  for (const float special : {std::nanf(""), std::numeric_limits<float>::infinity(), 1e-40f}) {
    Matrix x = Matrix::random(generator, 3, 96);
    Matrix without = x;
    x.row(1)[40] = special;
    for (int64_t k = 32; k < 64; ++k) {
      if (k != 40) x.row(1)[k] = 0;
      without.row(1)[k] = 0;  // the other two groups alone
    }
    const Matrix out = run(context, x, weight.view());
    const Matrix expected = run(context, without, weight.view());
    for (int64_t n = 0; n < 20; ++n) {
      EXPECT_EQ(out.row(0)[n], expected.row(0)[n]);
      EXPECT_EQ(out.row(2)[n], expected.row(2)[n]);
      if (special == 1e-40f) {
        EXPECT_EQ(out.row(1)[n], expected.row(1)[n]);
      } else {
        EXPECT_TRUE(std::isnan(out.row(1)[n]));
      }
    }
  }
}

TEST(Linear, Int8ActivationsHaveTheSameBitsWithEveryInstructionSet) {
  std::mt19937 generator(17);
  Matrix x = Matrix::random(generator, 5, 320);
  for (int64_t k = 0; k < 32; ++k) x.row(2)[k] = 0;
  x.row(3)[50] = std::nanf("");
  OpContext portable(1, size_t{1} << 20, CpuIsa::portable);
  const cpu::Int8Rows expected = cpu::quantize_rows(portable, x.view());
  for (const CpuIsa isa : {CpuIsa::avx2, CpuIsa::avx512}) {
    if (isa > best_cpu_isa()) continue;
    OpContext context(1, size_t{1} << 20, isa);
    const cpu::Int8Rows found = cpu::quantize_rows(context, x.view());
    EXPECT_EQ(std::memcmp(found.codes, expected.codes, 5 * 320), 0) << name_of(isa);
    EXPECT_EQ(std::memcmp(found.starts, expected.starts, 5 * 10 * sizeof(int32_t)), 0) << name_of(isa);
    for (int64_t i = 0; i < 5 * 10; ++i) {
      EXPECT_TRUE(found.scales[i] == expected.scales[i] ||
                  (std::isnan(found.scales[i]) && std::isnan(expected.scales[i])))
          << name_of(isa);
    }
  }
}

TEST(Linear, EveryFiniteF8CodeTimesAPowerOfTwoIsExact) {
  std::mt19937 generator(9);
  StoredWeight weight(generator, Format::fp8_row, 256, 1);
  for (int code = 0; code < 256; ++code) weight.bytes()[code] = static_cast<std::byte>(code);
  Matrix x(1, 1);
  x.row(0)[0] = 0.25f;
  OpContext context;
  const Matrix out = run(context, x, weight.view());
  for (int code = 0; code < 256; ++code) {
    if ((code & 0x7f) == 0x7f) continue;  // NaN: loaders refuse it
    const float value = float_from_f8_e4m3(static_cast<uint8_t>(code)) * 0.25f * weight.view().row_scales[code];
    EXPECT_EQ(out.row(0)[code], value) << code;
  }
}

TEST(Linear, EveryNvfp4CodeTimesEveryScaleIsOneRounding) {
  std::mt19937 generator(13);
  StoredWeight weight(generator, Format::nvfp4, 256, 16);
  for (int row = 0; row < 256; ++row) {
    for (int byte = 0; byte < 8; ++byte) {  // elements 0 to 15 have the codes 0 to 15
      weight.bytes()[8 * row + byte] = static_cast<std::byte>(2 * byte | (2 * byte + 1) << 4);
    }
  }
  std::vector<std::byte> scales;
  for (int code = 0; code < 256; ++code) scales.push_back(static_cast<std::byte>((code & 0x7f) == 0x7f ? 0 : code));
  WeightView view = weight.view();
  view.group_scales = scales.data();
  OpContext context;
  for (int64_t k = 0; k < 16; ++k) {
    Matrix x(1, 16);
    std::fill_n(x.row(0), 16, 0.0f);
    x.row(0)[k] = 1.0f;
    const Matrix out = run(context, x, view);
    for (int row = 0; row < 256; ++row) {
      const auto scale = static_cast<double>(float_from_f8_e4m3(std::to_integer<uint8_t>(scales[row])));
      const double exact = test::value_of_code(DType::u8, weight.bytes(), k) * scale;
      EXPECT_EQ(out.row(0)[row], static_cast<float>(exact * static_cast<double>(view.global_scale))) << k << " " << row;
    }
  }
}

TEST(Linear, InfinityAndNanOfTheWeightsReachTheOutput) {
  std::mt19937 generator(10);
  OpContext context;
  Matrix x = Matrix::random(generator, 2, 40);
  for (int64_t k = 0; k < 40; ++k) x.row(0)[k] = std::abs(x.row(0)[k]) + 0.1f;
  const std::pair<Format, std::array<uint16_t, 2>> specials[] = {{Format::f16, {0x7c00, 0x7e00}},
                                                                 {Format::bf16, {0x7f80, 0x7fc0}}};
  for (const auto& [format, codes] : specials) {
    for (const int64_t column : {0, 17, 39}) {
      StoredWeight weight(generator, format, 3, 40);
      std::memcpy(weight.bytes() + 2 * column, &codes[0], 2);
      std::memcpy(weight.bytes() + 2 * (40 + column), &codes[1], 2);
      const Matrix out = run(context, x, weight.view());
      EXPECT_EQ(out.row(0)[0], std::numeric_limits<float>::infinity());
      EXPECT_TRUE(std::isnan(out.row(0)[1]));
      EXPECT_TRUE(std::isfinite(out.row(0)[2]));
    }
  }
}

TEST(Linear, InputAndOutputMayBeColumnsOfOneBuffer) {
  std::mt19937 generator(11);
  OpContext context;
  const StoredWeight weight(generator, Format::bf16, 8, 12);
  Matrix both = Matrix::random(generator, 4, 20);
  Matrix x(4, 12);
  for (int64_t r = 0; r < 4; ++r) std::copy_n(both.row(r), 12, x.row(r));
  linear(context,
         {.out = columns_of(both.view(), 12, 8), .x = columns_of(both.view(), 0, 12), .weights = {&weight.view(), 1}});
  const Matrix expected = run(context, x, weight.view());
  for (int64_t r = 0; r < 4; ++r) EXPECT_TRUE(same_bits(both.row(r) + 12, expected.row(r), 8));
}

TEST(LinearDeathTest, RefusesWhatCannotBe) {
  std::mt19937 generator(12);
  OpContext context;
  const StoredWeight weight(generator, Format::fp8_row, 8, 8);
  Matrix x = Matrix::random(generator, 2, 8);
  Matrix out(2, 8);
  WeightView unscaled = weight.view();
  unscaled.row_scales = nullptr;
  EXPECT_DEATH(linear(context, {.out = out.view(), .x = x.view(), .weights = {&unscaled, 1}}), "is_valid_weight");
  WeightView twice = weight.view();
  twice.block_scales = twice.row_scales;
  EXPECT_DEATH(linear(context, {.out = out.view(), .x = x.view(), .weights = {&twice, 1}}), "is_valid_weight");
  WeightView half_a_group = weight.view();
  half_a_group.dtype = DType::u8;
  half_a_group.row_scales = nullptr;
  half_a_group.group_scales = half_a_group.data;
  EXPECT_DEATH(linear(context, {.out = out.view(), .x = x.view(), .weights = {&half_a_group, 1}}), "is_valid_weight");
  EXPECT_DEATH(linear(context, {.out = x.view(), .x = x.view(), .weights = {&weight.view(), 1}}), "overlap");
  Matrix narrow(2, 7);
  EXPECT_DEATH(linear(context, {.out = narrow.view(), .x = x.view(), .weights = {&weight.view(), 1}}), "columns");
  EXPECT_DEATH(linear_silu_mul(context, {.out = x.view(), .x = x.view(), .gate = weight.view(), .up = weight.view()}),
               "overlap");
  TensorView bf16 = x.view();  // of a card only
  bf16.dtype = DType::bf16;
  EXPECT_DEATH(linear(context, {.out = out.view(), .x = bf16, .weights = {&weight.view(), 1}}), "is_activation_matrix");
}

}  // namespace
}  // namespace blockdraft
