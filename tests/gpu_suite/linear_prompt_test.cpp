// The products of a prompt's passes, by cuBLASLt, against those of the CPU and of decoding.
#include "ops/cuda/linear_prompt.h"

#include <array>
#include <cmath>

#include <gtest/gtest.h>

#include "gpu_suite/card.h"
#include "support/stored_weight.h"
#include "tensor/cublas_lt.h"

namespace blockdraft {
namespace {

using test::Card;
using test::Format;
using test::Matrix;
using test::OnCard;
using test::rounded;
using test::same_bits;
using test::StoredWeight;

constexpr std::array kTaken{Format::bf16, Format::fp8_row, Format::fp8_block, Format::nvfp4};
constexpr int64_t kRows = kPromptRows;

// Where weights in BF16 are exact, only the order of float32 sums differs.
double tolerance(Format format) { return format == Format::fp8_block ? 5e-3 : 1e-4; }

class LinearPrompt : public testing::Test {
 protected:
  void SetUp() override {
    auto opened = CublasLt::open(Card::device());
    if (!opened) GTEST_SKIP() << opened.error().message;
    products_ = *std::move(opened);
  }

  // From now on calls of kPromptRows rows are those of a prompt, or none are.
  void set_prompt(OnCard& on, bool is_prompt) const {
    on.card().prompt_products = is_prompt ? products_.get() : nullptr;
  }

  Matrix multiply(OnCard& on, std::span<const WeightView> weights, const ConstTensorView& x, int64_t gap = 3) const {
    int64_t columns = 0;
    for (const WeightView& weight : weights) columns += weight.out_features;
    const TensorView out = on.upload(Matrix(x.dim(0), columns, columns + gap));
    linear(on.card(), {.out = out, .x = x, .weights = weights});
    return on.download(out);
  }

 private:
  std::shared_ptr<CublasLt> products_;
};

// A stride of out that the library can write with, and one that it cannot; features that are odd in number.
TEST_F(LinearPrompt, MatchesTheCpu) {
  std::mt19937 generator(1);
  for (const Format format : kTaken) {
    for (const auto& [n, k] : {std::pair(132, 64), std::pair(257, 512), std::pair(48, 4096), std::pair(1000, 1040)}) {
      for (const bool bias : {false, true}) {
        OnCard on;
        set_prompt(on, true);
        const StoredWeight weight(generator, format, n, k, bias);
        const WeightView uploaded = on.upload(weight.view());
        ASSERT_TRUE(cu::prompt_takes(on.card(), kRows, uploaded));
        const Matrix x = rounded(Matrix::random(generator, kRows, k, k + 8));
        Matrix expected(kRows, n);
        linear(on.cpu(), {.out = expected.view(), .x = x.view(), .weights = {&weight.view(), 1}});
        for (const int64_t gap : {3, 4}) {
          const Matrix found = multiply(on, {&uploaded, 1}, on.upload(x), gap);
          EXPECT_TRUE(found.gaps_untouched());
          EXPECT_LT(test::relative_error(found, expected), tolerance(format))
              << name_of(format) << " " << n << " x " << k << ", bias " << bias << ", gap " << gap;
          EXPECT_TRUE(same_bits(multiply(on, {&uploaded, 1}, on.upload_bf16(x), gap), found)) << "x in BF16";
        }
      }
    }
  }
}

TEST_F(LinearPrompt, RoundsXToBf16) {
  std::mt19937 generator(2);
  OnCard on;
  set_prompt(on, true);
  const StoredWeight weight(generator, Format::bf16, 64, 256);
  const WeightView uploaded = on.upload(weight.view());
  const Matrix x = Matrix::random(generator, kRows, 256, 259);
  EXPECT_TRUE(
      same_bits(multiply(on, {&uploaded, 1}, on.upload(x)), multiply(on, {&uploaded, 1}, on.upload(rounded(x)))));
}

TEST_F(LinearPrompt, AddsToWhatIsThere) {
  std::mt19937 generator(3);
  for (const Format format : kTaken) {
    for (const bool bias : {false, true}) {
      for (const int64_t stride : {100, 103}) {
        OnCard on;
        set_prompt(on, true);
        const StoredWeight weight(generator, format, 99, 640, bias);
        const WeightView uploaded = on.upload(weight.view());
        const Matrix x = rounded(Matrix::random(generator, kRows, 640));
        Matrix expected = Matrix::random(generator, kRows, 99, stride);
        const TensorView out = on.upload(expected);
        linear(on.card(), {.out = out, .x = on.upload(x), .weights = {&uploaded, 1}, .accumulate = true});
        linear(on.cpu(), {.out = expected.view(), .x = x.view(), .weights = {&weight.view(), 1}, .accumulate = true});
        const Matrix found = on.download(out);
        EXPECT_TRUE(found.gaps_untouched());
        EXPECT_LT(test::relative_error(found, expected), tolerance(format))
            << name_of(format) << ", bias " << bias << ", stride " << stride;
      }
    }
  }
}

// The second one begins where the library cannot write.
TEST_F(LinearPrompt, StacksUnlikeWeights) {
  std::mt19937 generator(4);
  OnCard on;
  set_prompt(on, true);
  std::vector<StoredWeight> stored;
  std::vector<WeightView> host, weights;
  int64_t n = 65;
  for (const Format format : {Format::bf16, Format::bf16, Format::fp8_row, Format::nvfp4, Format::fp8_block}) {
    stored.emplace_back(generator, format, n, 256, n % 2 == 0);
    ++n;
  }
  for (const StoredWeight& weight : stored) {
    host.push_back(weight.view());
    weights.push_back(on.upload(weight.view()));
  }
  const Matrix x = rounded(Matrix::random(generator, kRows, 256));
  const Matrix found = multiply(on, weights, on.upload(x));
  Matrix expected(kRows, found.columns());
  linear(on.cpu(), {.out = expected.view(), .x = x.view(), .weights = host});
  EXPECT_TRUE(found.gaps_untouched());
  EXPECT_LT(test::relative_error(found, expected), tolerance(Format::fp8_block));
}

TEST_F(LinearPrompt, SiluMulMatchesTheCpu) {
  std::mt19937 generator(5);
  for (const Format format : kTaken) {
    for (const auto& [n, k] : {std::pair(96, 128), std::pair(101, 1024)}) {
      OnCard on;
      set_prompt(on, true);
      const StoredWeight gate(generator, format, n, k, true);
      const StoredWeight up(generator, format, n, k);
      const WeightView gate_on_card = on.upload(gate.view());
      const WeightView up_on_card = on.upload(up.view());
      const Matrix x = rounded(Matrix::random(generator, kRows, k));
      Matrix expected(kRows, n);
      linear_silu_mul(on.cpu(), {.out = expected.view(), .x = x.view(), .gate = gate.view(), .up = up.view()});
      const auto run = [&](const TensorView& out) {
        linear_silu_mul(on.card(), {.out = out, .x = on.upload_bf16(x), .gate = gate_on_card, .up = up_on_card});
        return on.download(out);
      };
      const Matrix found = run(on.upload(Matrix(kRows, n, n + 3)));
      EXPECT_TRUE(found.gaps_untouched());
      EXPECT_LT(test::relative_error(found, expected), 2 * tolerance(format))
          << name_of(format) << " " << n << " x " << k;
      EXPECT_TRUE(same_bits(run(on.poisoned_bf16(kRows, n, n + 3)), rounded(found))) << name_of(format);
    }
  }
}

// With room for the sums of a split K, too: few features, many columns.
TEST_F(LinearPrompt, ARowsBitsAreItsOwnInEveryRun) {
  std::mt19937 generator(6);
  constexpr int kRuns = 10;
  for (const Format format : kTaken) {
    for (const auto& [n, k] : {std::pair(256, 8192), std::pair(1024, 1024)}) {
      OnCard on;
      set_prompt(on, true);
      const StoredWeight weight(generator, format, n, k);
      const WeightView uploaded = on.upload(weight.view());
      Matrix x = Matrix::random(generator, kRows, k);
      const Matrix expected = multiply(on, {&uploaded, 1}, on.upload(x), 4);
      int differing = 0;
      for (int i = 0; i < kRuns; ++i)
        differing += same_bits(multiply(on, {&uploaded, 1}, on.upload(x), 4), expected) ? 0 : 1;
      EXPECT_EQ(differing, 0) << name_of(format) << ", K " << k << ": of " << kRuns << " runs";
      // Rows of no sequence hold whatever was there.
      const auto is_kept = [](int64_t r) { return r % 37 == 0 || r == kRows - 1; };
      for (int64_t r = 0; r < kRows; ++r) {
        for (int64_t c = 0; c < k && !is_kept(r); ++c) x.row(r)[c] = r % 3 == 0 ? std::nanf("") : 1e30f;
      }
      const Matrix found = multiply(on, {&uploaded, 1}, on.upload(x), 4);
      for (int64_t r = 0; r < kRows; ++r) {
        if (!is_kept(r)) continue;
        EXPECT_TRUE(same_bits(found.row(r), expected.row(r), n)) << name_of(format) << ", row " << r;
      }
    }
  }
}

TEST_F(LinearPrompt, ReadsLargeWeightsInPieces) {
  std::mt19937 generator(7);
  constexpr int64_t kFeatures = 8500;
  constexpr int64_t kColumns = 8192;
  static_assert(kFeatures * kColumns * 2 > cu::kPromptPieceBytes);
  OnCard on(size_t{256} << 20);
  const StoredWeight weight(generator, Format::fp8_block, kFeatures, kColumns);
  const WeightView uploaded = on.upload(weight.view());
  const TensorView x = on.upload_bf16(Matrix::random(generator, kRows, kColumns));
  const Matrix decoded = multiply(on, {&uploaded, 1}, x);
  set_prompt(on, true);
  EXPECT_LT(test::relative_error(multiply(on, {&uploaded, 1}, x), decoded), tolerance(Format::fp8_block));
}

// Other numbers of rows, weights of other types, and rows that the library cannot read.
TEST_F(LinearPrompt, LeavesTheRestToTheKernelsOfDecoding) {
  std::mt19937 generator(8);
  const auto check = [&](Format format, int64_t rows, int64_t k) {
    OnCard on;
    const StoredWeight weight(generator, format, 72, k);
    const WeightView uploaded = on.upload(weight.view());
    const TensorView x = on.upload(Matrix::random(generator, rows, k));
    const Matrix expected = multiply(on, {&uploaded, 1}, x);
    set_prompt(on, true);
    EXPECT_FALSE(cu::prompt_takes(on.card(), rows, uploaded));
    EXPECT_TRUE(same_bits(multiply(on, {&uploaded, 1}, x), expected)) << name_of(format) << ", rows " << rows;
  };
  for (const int64_t rows : {1, 255, 257, 512}) check(Format::bf16, rows, 256);
  for (const Format format : {Format::f32, Format::f16, Format::int8}) check(format, kRows, 256);
  check(Format::bf16, kRows, 60);
}

TEST_F(LinearPrompt, QueuesNothingWhileTheCardSkips) {
  std::mt19937 generator(9);
  OnCard on;
  set_prompt(on, true);
  for (const Format format : kTaken) {
    const StoredWeight weight(generator, format, 64, 256, true);
    const WeightView uploaded = on.upload(weight.view());
    const TensorView x = on.upload(Matrix::random(generator, kRows, 256));
    const TensorView out = on.upload(Matrix(kRows, 64));
    Card::device().set_skips(true);
    linear(on.card(), {.out = out, .x = x, .weights = {&uploaded, 1}});
    linear_silu_mul(on.card(), {.out = out, .x = x, .gate = uploaded, .up = uploaded});
    Card::device().set_skips(false);
    const Matrix found = on.download(out);
    for (int64_t r = 0; r < kRows; ++r) EXPECT_TRUE(std::isnan(found.row(r)[0]) && std::isnan(found.row(r)[63]));
  }
}

}  // namespace
}  // namespace blockdraft
