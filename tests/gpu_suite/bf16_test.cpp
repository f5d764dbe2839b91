// Activations in BF16: an output is the float32 one, rounded; an input counts as the float32 values that it holds.
#include <cmath>

#include <gtest/gtest.h>

#include "gpu_suite/card.h"
#include "ops/attention.h"
#include "ops/copy_rows.h"
#include "ops/linear.h"
#include "ops/linear_argmax.h"
#include "ops/linear_silu_mul.h"
#include "ops/rms_norm.h"
#include "support/paged_sequences.h"
#include "support/stored_weight.h"

namespace blockdraft {
namespace {

using test::Format;
using test::Matrix;
using test::OnCard;
using test::PagedSequences;
using test::rounded;
using test::same_bits;
using test::SequenceSpec;
using test::StoredWeight;

TEST(Bf16, RmsNormWritesIt) {
  std::mt19937 generator(1);
  OnCard on;
  for (const auto& [groups, dim] : {std::pair(1, 4096), std::pair(1, 2560), std::pair(1, 8192), std::pair(1, 770),
                                    std::pair(1, 33), std::pair(8, 128), std::pair(1, 12288)}) {
    const Matrix weight = Matrix::random(generator, 1, dim);
    const ConstTensorView weight_on_card = view_f32(on.upload(weight).f32(), Shape{dim});
    const int64_t columns = groups * dim;
    const TensorView x = on.upload(Matrix::random(generator, 7, columns));
    const TensorView expected = on.upload(Matrix(7, columns));
    rms_norm(on.card(), expected, x, weight_on_card, 1e-6f);
    for (const int64_t gap : {0, 4, 1}) {
      const TensorView out = on.poisoned_bf16(7, columns, columns + gap);
      rms_norm(on.card(), out, x, weight_on_card, 1e-6f);
      const Matrix found = on.download(out);
      EXPECT_TRUE(found.gaps_untouched());
      EXPECT_TRUE(same_bits(found, rounded(on.download(expected)))) << dim << ", gap " << gap;
      const TensorView alone = on.poisoned_bf16(1, columns);
      rms_norm(on.card(), alone, rows_of(x, 4, 1), weight_on_card, 1e-6f);
      EXPECT_TRUE(same_bits(on.download(alone).row(0), found.row(4), columns));
    }
  }
}

// One unit a sequence, a unit a chunk, units of groups, and sums over several groups of one unit.
TEST(Bf16, AttentionWritesIt) {
  const std::vector<std::vector<SequenceSpec>> batches{
      {{1, 100, 1}}, {{1, 700, 16}, {2, 0, 3}}, {{1, 9000, 16}}, {{1, 2300, 256}}, {{1, 1500, 64}, {2, 3000, 200}}};
  for (const auto& specs : batches) {
    for (const int32_t head_dim : {64, 128, 256}) {
      OnCard on(size_t{256} << 20);
      PagedSequences pages(specs, 8, head_dim, 5);
      pages.fill();
      const BatchView batch = pages.batch();
      std::mt19937 generator(6);
      const int64_t columns = 16 * int64_t{head_dim};
      const TensorView expected = on.upload(Matrix(batch.num_rows, columns));
      const TensorView q = on.upload(Matrix::random(generator, batch.num_rows, columns));
      AttentionArgs args{.out = expected,
                         .q = q,
                         .kv = on.upload_bf16(pages.kv()),
                         .batch = on.upload(batch),
                         .num_heads = 16,
                         .scale = 1.0f / std::sqrt(static_cast<float>(head_dim))};
      attention(on.card(), args);
      const Matrix all = rounded(on.download(expected));
      // Scratch of its own, then that of q, which is lost.
      for (const TensorView& unrounded : {on.upload(Matrix(batch.num_rows, columns, columns + 4)), q}) {
        const TensorView out = on.poisoned_bf16(batch.num_rows, columns, columns + 2);
        args.out = out;
        args.unrounded = unrounded;
        attention(on.card(), args);
        const Matrix found = on.download(out);
        EXPECT_TRUE(found.gaps_untouched());
        EXPECT_TRUE(same_bits(found, all)) << batch.num_rows << " rows of " << head_dim;
      }
    }
  }
}

TEST(Bf16, ProductsReadIt) {
  std::mt19937 generator(2);
  for (const Format format : test::kFormats) {
    for (const int64_t k : {64, 512, 4224}) {
      if (columns_for(format, k) != k) continue;
      OnCard on;
      const StoredWeight stored[] = {StoredWeight(generator, format, 72, k, true),
                                     StoredWeight(generator, format, 72, k)};
      const WeightView weights[] = {on.upload(stored[0].view()), on.upload(stored[1].view())};
      const Matrix x = rounded(Matrix::random(generator, 70, k, k + 8));
      const TensorView wide = on.upload(x);
      const TensorView narrow = on.upload_bf16(x);
      for (const int rows : {1, 17, 40, 70}) {
        SCOPED_TRACE(testing::Message() << name_of(format) << ", K " << k << ", rows " << rows);
        const auto multiply = [&](const TensorView& in) {
          const TensorView out = on.upload(Matrix(rows, 144, 147));
          linear(on.card(), {.out = out, .x = rows_of(in, 0, rows), .weights = weights});
          return on.download(out);
        };
        EXPECT_TRUE(same_bits(multiply(narrow), multiply(wide)));
        const auto choose = [&](const TensorView& in) {
          int32_t* ids = on.poisoned_i32(rows);
          linear_argmax(on.card(), {.ids = ids, .x = rows_of(in, 0, rows), .weight = weights[0], .num_choices = 71});
          return on.download(ids, rows);
        };
        EXPECT_EQ(choose(narrow), choose(wide));
      }
    }
  }
}

TEST(Bf16, SiluMulReadsAndWritesIt) {
  std::mt19937 generator(3);
  for (const Format format : test::kFormats) {
    for (const int64_t k : {64, 512}) {
      if (columns_for(format, k) != k) continue;
      OnCard on;
      const StoredWeight gate(generator, format, 70, k);
      const StoredWeight up(generator, format, 70, k, true);
      const WeightView gate_on_card = on.upload(gate.view());
      const WeightView up_on_card = on.upload(up.view());
      const Matrix x = rounded(Matrix::random(generator, 66, k));
      const TensorView expected = on.upload(Matrix(66, 70));
      linear_silu_mul(on.card(), {.out = expected, .x = on.upload(x), .gate = gate_on_card, .up = up_on_card});
      for (const TensorView& in : {on.upload(x), on.upload_bf16(x)}) {
        const TensorView out = on.poisoned_bf16(66, 70, 73);
        linear_silu_mul(on.card(), {.out = out, .x = in, .gate = gate_on_card, .up = up_on_card});
        const Matrix found = on.download(out);
        EXPECT_TRUE(found.gaps_untouched());
        EXPECT_TRUE(same_bits(found, rounded(on.download(expected)))) << name_of(format) << ", K " << k;
      }
    }
  }
}

TEST(Bf16, CopyRowsMovesIt) {
  std::mt19937 generator(4);
  OnCard on;
  const Matrix x = rounded(Matrix::random(generator, 20, 770, 771));
  const std::vector<int32_t> index{19, 0, 7, 7};
  for (const bool by_index : {true, false}) {
    const TensorView out = on.poisoned_bf16(4, 770, 800);
    copy_rows(on.card(), out, on.upload_bf16(x), by_index ? on.upload(index) : nullptr);
    const Matrix found = on.download(out);
    EXPECT_TRUE(found.gaps_untouched());
    for (int64_t r = 0; r < 4; ++r) {
      EXPECT_TRUE(same_bits(found.row(r), x.row(by_index ? index[static_cast<size_t>(r)] : r), 770));
    }
  }
}

}  // namespace
}  // namespace blockdraft
