// The products of a card in depth: every split of the columns, every number of rows.
#include "ops/cuda/linear_stream.h"

#include <cmath>
#include <numeric>

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include "gpu_suite/card.h"
#include "ops/activation.h"
#include "ops/argmax.h"
#include "ops/linear.h"
#include "ops/linear_argmax.h"
#include "ops/linear_silu_mul.h"
#include "support/stored_weight.h"

namespace blockdraft {
namespace {

using test::Card;
using test::Format;
using test::Matrix;
using test::OnCard;
using test::same_bits;
using test::StoredWeight;

// The types that have more than one kernel.
constexpr std::array kStreamed{Format::bf16, Format::fp8_row, Format::fp8_block, Format::nvfp4};

// Inputs that are BF16 already come out of every kernel with rounding errors of float32 sums only.
constexpr double kTolerance = 1e-5;

Matrix random_bf16(std::mt19937& generator, int64_t rows, int64_t columns, int64_t row_stride = 0) {
  Matrix matrix = Matrix::random(generator, rows, columns, row_stride);
  for (int64_t r = 0; r < rows; ++r) test::round_to_bf16(matrix.row(r), columns);
  return matrix;
}

// Poisoned out, with a gap between its rows.
Matrix multiply(OnCard& on, std::span<const WeightView> weights, const ConstTensorView& x) {
  int64_t columns = 0;
  for (const WeightView& weight : weights) columns += weight.out_features;
  const TensorView out = on.upload(Matrix(x.dim(0), columns, columns + 3));
  linear(on.card(), {.out = out, .x = x, .weights = weights});
  return on.download(out);
}

TEST(LinearStream, TakesWhatItIsFor) {
  OnCard on;
  std::mt19937 generator(1);
  const bool is_hopper = Card::device().compute_capability() == 90;
  for (const Format format : test::kFormats) {
    const bool is_streamed = std::ranges::find(kStreamed, format) != kStreamed.end();
    for (const int64_t columns : {64, 128, 384}) {
      const StoredWeight weight(generator, format, 8, columns);
      const char* why_not = nullptr;
      EXPECT_EQ(cu::stream_takes(on.card(), weight.view(), &why_not), is_hopper && is_streamed && columns != 64);
      EXPECT_EQ(why_not == nullptr, is_hopper && is_streamed && columns != 64);
    }
  }
}

TEST(LinearStream, MatchesTheCpuForEverySplitOfTheColumns) {
  std::mt19937 generator(2);
  for (const Format format : kStreamed) {
    for (const auto& [n, k] : {std::pair(1, 128), std::pair(7, 384), std::pair(130, 1024), std::pair(48, 4096),
                               std::pair(257, 2560), std::pair(40, 4224), std::pair(33, 12288), std::pair(24, 20480)}) {
      OnCard on;
      const StoredWeight weight(generator, format, n, k, true);
      const WeightView uploaded = on.upload(weight.view());
      const Matrix x = random_bf16(generator, 65, k, k + 12);
      Matrix expected(65, n);
      linear(on.cpu(), {.out = expected.view(), .x = x.view(), .weights = {&weight.view(), 1}});
      const TensorView x_on_card = on.upload(x);
      for (const int rows : {1, 5, 16, 17, 33, 64, 65}) {
        const Matrix found = multiply(on, {&uploaded, 1}, rows_of(x_on_card, 0, rows));
        Matrix some(rows, n);
        for (int64_t r = 0; r < rows; ++r) std::copy_n(expected.row(r), n, some.row(r));
        EXPECT_TRUE(found.gaps_untouched());
        EXPECT_LT(test::relative_error(found, some), kTolerance)
            << name_of(format) << " " << n << " x " << k << ", rows " << rows;
      }
    }
  }
}

// Rows that float4 loads cannot read, and an out that float4 stores cannot write.
TEST(LinearStream, NeedsNoAlignmentOfXAndOut) {
  std::mt19937 generator(3);
  OnCard on;
  const StoredWeight weight(generator, Format::bf16, 64, 512);
  const WeightView uploaded = on.upload(weight.view());
  const Matrix x = random_bf16(generator, 20, 512, 517);
  const TensorView x_on_card = on.upload(x);
  const Matrix expected = multiply(on, {&uploaded, 1}, x_on_card);
  const TensorView wide = on.upload(Matrix(20, 66, 67));
  linear(on.card(), {.out = columns_of(wide, 1, 64), .x = x_on_card, .weights = {&uploaded, 1}});
  const Matrix found = on.download(wide);
  for (int64_t r = 0; r < 20; ++r) {
    EXPECT_TRUE(std::isnan(found.row(r)[0]) && std::isnan(found.row(r)[65]));
    EXPECT_TRUE(same_bits(found.row(r) + 1, expected.row(r), 64)) << r;
  }
}

// Producers may write BF16, and take it: the same sums, and the same rounded.
TEST(LinearStream, TakesAndGivesBf16) {
  std::mt19937 generator(12);
  for (const Format format : kStreamed) {
    for (const int rows : {5, 30, 64}) {
      OnCard on;
      const StoredWeight weight(generator, format, 72, 512, true);
      const WeightView uploaded = on.upload(weight.view());
      if (!cu::stream_takes(on.card(), uploaded)) continue;  // another card: the plain kernel has float32 only
      const Matrix x = random_bf16(generator, rows, 512);
      const Matrix expected = multiply(on, {&uploaded, 1}, on.upload(x));
      std::vector<uint16_t> codes;
      for (int r = 0; r < rows; ++r) {
        for (int64_t k = 0; k < 512; ++k) codes.push_back(bf16_from_float(x.row(r)[k]));
      }
      auto* out = static_cast<uint16_t*>(on.poisoned(static_cast<size_t>(rows * 72 * 2)));
      cu::StreamCall call;
      call.x = on.upload(codes);
      call.x_stride = 512;
      call.x_is_bf16 = true;
      call.rows = rows;
      call.num_weights = 1;
      call.weights[0] = uploaded;
      call.out = out;
      call.out_stride = 72;
      call.out_is_bf16 = true;
      cu::launch_stream(on.card(), "linear", call);
      const std::vector<uint16_t> found = on.download(out, rows * 72);
      for (int r = 0; r < rows; ++r) {
        for (int64_t n = 0; n < 72; ++n) {
          ASSERT_EQ(found[static_cast<size_t>(r * 72 + n)], bf16_from_float(expected.row(r)[n]))
              << name_of(format) << ", row " << r << " of " << rows << ", feature " << n;
        }
      }
    }
  }
}

TEST(LinearStream, ARowHasTheSameBitsForEveryNumberOfRows) {
  std::mt19937 generator(4);
  constexpr int64_t kRows = 1000;
  for (const Format format : test::kFormats) {
    for (const int64_t k : {96, 384, 2560, 4096, 12288}) {
      if (k > 1000 && std::ranges::find(kStreamed, format) == kStreamed.end()) continue;  // one kernel, one order
      if (columns_for(format, k) != k) continue;
      OnCard on;
      const StoredWeight stored[] = {StoredWeight(generator, format, 96, k, true),
                                     StoredWeight(generator, format, 41, k),
                                     StoredWeight(generator, format, 24, k, true)};
      const std::vector<WeightView> weights = {on.upload(stored[0].view()), on.upload(stored[1].view()),
                                               on.upload(stored[2].view())};
      const TensorView x = on.upload(Matrix::random(generator, kRows, k));
      const Matrix all = multiply(on, weights, x);
      const auto check = [&](int64_t first, int64_t count) {
        const Matrix found = multiply(on, weights, rows_of(x, first, count));
        for (int64_t r = 0; r < count; ++r) {
          ASSERT_TRUE(same_bits(found.row(r), all.row(first + r), all.columns()))
              << name_of(format) << ", K " << k << ": row " << first + r << " of " << first << " + " << count;
        }
      };
      for (int64_t count = 1; count <= 65; ++count) check(0, count);
      for (const int64_t count : {100, 256}) check(0, count);
      for (const int64_t first : {1, 7, 15, 40, 999}) check(first, std::min<int64_t>(50, kRows - first));
      // Alone in the stack, too.
      const Matrix alone = multiply(on, {&weights[1], 1}, rows_of(x, 0, 30));
      for (int64_t r = 0; r < 30; ++r) ASSERT_TRUE(same_bits(alone.row(r), all.row(r) + 96, 41));
    }
  }
}

TEST(LinearStream, ARowOfNaNsStaysAlone) {
  std::mt19937 generator(5);
  for (const Format format : kStreamed) {
    OnCard on;
    const StoredWeight weight(generator, format, 72, 512);
    const WeightView uploaded = on.upload(weight.view());
    Matrix x = Matrix::random(generator, 40, 512);
    const Matrix expected = multiply(on, {&uploaded, 1}, on.upload(x));
    for (const int row : {3, 17, 38}) std::fill_n(x.row(row), 512, std::nanf(""));
    const Matrix found = multiply(on, {&uploaded, 1}, on.upload(x));
    for (int64_t r = 0; r < 40; ++r) {
      const bool is_nan = r == 3 || r == 17 || r == 38;
      if (is_nan) {
        EXPECT_TRUE(std::isnan(found.row(r)[0]) && std::isnan(found.row(r)[71]));
      } else {
        EXPECT_TRUE(same_bits(found.row(r), expected.row(r), 72)) << r;
      }
    }
  }
}

TEST(LinearStream, AddsToWhatIsThere) {
  std::mt19937 generator(6);
  for (const Format format : test::kFormats) {
    for (const int64_t k : {640, 8192}) {
      OnCard on;
      const StoredWeight weight(generator, format, 99, k, true);
      const WeightView uploaded = on.upload(weight.view());
      const TensorView x = on.upload(Matrix::random(generator, 37, k));
      const Matrix before = Matrix::random(generator, 37, 99, 101);
      const TensorView out = on.upload(before);
      linear(on.card(), {.out = out, .x = x, .weights = {&uploaded, 1}, .accumulate = true});
      const Matrix product = multiply(on, {&uploaded, 1}, x);
      const Matrix found = on.download(out);
      for (int64_t r = 0; r < 37; ++r) {
        for (int64_t c = 0; c < 99; ++c) ASSERT_EQ(found.row(r)[c], before.row(r)[c] + product.row(r)[c]);
      }
    }
  }
}

TEST(LinearStream, StacksUnlikeWeights) {
  std::mt19937 generator(7);
  OnCard on;
  std::vector<StoredWeight> stored;
  std::vector<WeightView> weights;
  for (const Format format :
       {Format::bf16, Format::bf16, Format::fp8_row, Format::fp8_block, Format::f32, Format::bf16}) {
    stored.emplace_back(generator, format, 20, 256);
  }
  for (const StoredWeight& weight : stored) weights.push_back(on.upload(weight.view()));
  const TensorView x = on.upload(Matrix::random(generator, 3, 256));
  const Matrix found = multiply(on, weights, x);
  for (size_t i = 0; i < weights.size(); ++i) {
    const Matrix alone = multiply(on, {&weights[i], 1}, x);
    for (int64_t r = 0; r < 3; ++r) {
      EXPECT_TRUE(same_bits(alone.row(r), found.row(r) + 20 * static_cast<int64_t>(i), 20)) << i;
    }
  }
}

TEST(LinearStream, SiluMulMatchesTheProducts) {
  std::mt19937 generator(8);
  for (const Format format : kStreamed) {
    for (const auto& [n, k] : {std::pair(100, 384), std::pair(24, 4096), std::pair(13, 8192)}) {
      OnCard on;
      const StoredWeight gate(generator, format, n, k, true);
      const StoredWeight up(generator, format, n, k);
      const WeightView gate_on_card = on.upload(gate.view());
      const WeightView up_on_card = on.upload(up.view());
      const TensorView x = on.upload(Matrix::random(generator, 70, k));
      const TensorView out = on.upload(Matrix(70, n, n + 2));
      linear_silu_mul(on.card(), {.out = out, .x = x, .gate = gate_on_card, .up = up_on_card});
      const Matrix all = on.download(out);
      EXPECT_TRUE(all.gaps_untouched());
      const WeightView both[] = {gate_on_card, up_on_card};
      const TensorView products = on.upload(Matrix(70, 2 * n));
      linear(on.card(), {.out = products, .x = x, .weights = both});
      const TensorView expected = on.upload(Matrix(70, n, n + 2));
      silu_mul(on.card(), expected, products);
      EXPECT_TRUE(same_bits(all, on.download(expected))) << name_of(format) << " " << n << " x " << k;
      for (const int rows : {1, 16, 17, 64}) {
        linear_silu_mul(
            on.card(),
            {.out = rows_of(out, 0, rows), .x = rows_of(x, 0, rows), .gate = gate_on_card, .up = up_on_card});
        EXPECT_TRUE(same_bits(on.download(out), all)) << rows;
      }
    }
  }
}

TEST(LinearStream, ArgmaxFindsTiesAndNaN) {
  std::mt19937 generator(9);
  for (const Format format : kStreamed) {
    OnCard on;
    StoredWeight weight(generator, format, 5003, 256);
    // Row 4001 and others repeat row 77, so that ties are where one of them is best.
    const auto row_bytes = static_cast<size_t>(weight.view().row_bytes());
    const auto copy_row = [&](size_t to) {
      std::memcpy(weight.bytes() + to * row_bytes, weight.bytes() + 77 * row_bytes, row_bytes);
    };
    if (format == Format::bf16) {
      for (const size_t to : {78, 85, 4001}) copy_row(to);
    }
    const WeightView uploaded = on.upload(weight.view());
    Matrix x = Matrix::random(generator, 66, 256);
    if (format == Format::bf16) {  // rows of x along that weight row
      for (int64_t k = 0; k < 256; ++k) {
        x.row(40)[k] = 9.0f * static_cast<float>(test::value_of_code(DType::bf16, weight.view().row(77), k));
      }
    }
    x.row(20)[5] = std::nanf("");
    const TensorView x_on_card = on.upload(x);
    const Matrix logits = multiply(on, {&uploaded, 1}, x_on_card);
    for (const int choices : {1, 900, 4160, 5003}) {
      std::vector<int32_t> expected(66);
      argmax(on.cpu(), expected.data(), logits.view(), choices);
      EXPECT_EQ(expected[20], kNotANumber);
      if (format == Format::bf16 && choices > 100) {
        EXPECT_EQ(expected[40], 77);
      }
      int32_t* ids = on.poisoned_i32(66);
      linear_argmax(on.card(), {.ids = ids, .x = x_on_card, .weight = uploaded, .num_choices = choices});
      EXPECT_EQ(on.download(ids, 66), expected) << name_of(format) << " " << choices;
      linear_argmax(on.card(), {.ids = ids,
                                .x = x_on_card,
                                .weight = uploaded,
                                .num_choices = choices,
                                .multiplier = 0.01f,
                                .softcap = 30.0f});
      const TensorView z = on.upload(logits);
      scale_softcap(on.card(), z, 0.01f, 30.0f);
      int32_t* capped = on.poisoned_i32(66);
      argmax(on.card(), capped, z, choices);
      EXPECT_EQ(on.download(ids, 66), on.download(capped, 66)) << name_of(format) << " " << choices;
    }
  }
}

// Kernels of a chain overlap (programmatic dependent launch). Whatever they read too early or overwrite too early shows
// against the same chain with nothing overlapping; outputs are poisoned before every replay.
TEST(LinearStream, OverlappingKernelsChangeNothing) {
  std::mt19937 generator(10);
  constexpr int kReplays = 50;
  constexpr int64_t kWidth = 1024;
  for (const Format format : kStreamed) {
    for (const int rows : {3, 32, 50}) {
      OnCard on;
      std::vector<StoredWeight> stored;
      std::vector<WeightView> weights;
      for (int i = 0; i < 8; ++i) {
        stored.emplace_back(generator, format, i % 4 == 2 ? 1536 : kWidth, i % 4 == 3 ? 1536 : kWidth);
        weights.push_back(on.upload(stored.back().view()));
      }
      const TensorView x = on.upload(Matrix::random(generator, rows, kWidth));
      constexpr int64_t kColumns = 1536;
      const auto size = static_cast<size_t>(rows * kColumns * 4);
      auto* outs = static_cast<std::byte*>(on.poisoned(9 * size));
      const auto out = [&](size_t i, int64_t columns) {
        return TensorView{outs + i * size, DType::f32, Shape{rows, columns}, kColumns};
      };
      const auto run = [&](bool alone) {
        Card::device().fill(outs, 0xFF, 9 * size, "poison");
        ConstTensorView in = x;
        for (size_t i = 0; i < weights.size(); ++i) {
          const TensorView to = out(i, weights[i].out_features);
          if (i % 4 == 2) {
            linear_silu_mul(on.card(), {.out = to, .x = in, .gate = weights[i], .up = weights[(i + 4) % 8]});
          } else {
            linear(on.card(), {.out = to, .x = in, .weights = {&weights[i], 1}});
          }
          if (alone) on.synchronize();
          in = to;
        }
        linear_argmax(
            on.card(),
            {.ids = reinterpret_cast<int32_t*>(outs + 8 * size), .x = in, .weight = weights[0], .num_choices = kWidth});
      };
      run(true);
      const std::vector<std::byte> expected = on.download(outs, static_cast<int64_t>(9 * size));
      cudaGraph_t graph = nullptr;
      cudaGraphExec_t executable = nullptr;
      const cudaStream_t stream = Card::device().stream();
      ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
      run(false);
      ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
      ASSERT_EQ(cudaGraphInstantiate(&executable, graph, 0), cudaSuccess);
      int differing = 0;
      for (int i = 0; i < kReplays; ++i) {
        ASSERT_EQ(cudaGraphLaunch(executable, stream), cudaSuccess);
        differing += on.download(outs, static_cast<int64_t>(9 * size)) != expected ? 1 : 0;
      }
      EXPECT_EQ(differing, 0) << name_of(format) << ", rows " << rows << ": of " << kReplays << " replays";
      cudaGraphExecDestroy(executable);
      cudaGraphDestroy(graph);
    }
  }
}

}  // namespace
}  // namespace blockdraft
