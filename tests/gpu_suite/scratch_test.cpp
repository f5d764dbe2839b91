// Scratch is as much as the functions that plan it say: an op that takes more ends the program.
#include <cmath>

#include <gtest/gtest.h>

#include "gpu_suite/card.h"
#include "ops/argmax.h"
#include "ops/attention.h"
#include "ops/linear_argmax.h"
#include "ops/sample.h"
#include "ops/top_k.h"
#include "support/paged_sequences.h"
#include "support/stored_weight.h"

namespace blockdraft {
namespace {

using test::Card;
using test::Matrix;
using test::OnCard;

constexpr int64_t kSizes[] = {1, 1000, 2049, 151936};

TEST(Scratch, OfArgmaxAndSample) {
  std::mt19937 generator(1);
  for (const int64_t rows : {1, 33}) {
    for (const int64_t choices : kSizes) {
      const Matrix logits = Matrix::random(generator, rows, choices);
      std::vector<int32_t> expected(static_cast<size_t>(rows));
      OnCard chosen(cu::argmax_scratch_bytes(rows));
      argmax(chosen.cpu(), expected.data(), logits.view(), choices);
      int32_t* ids = chosen.poisoned_i32(rows);
      argmax(chosen.card(), ids, chosen.upload(logits), choices);
      EXPECT_EQ(chosen.download(ids, rows), expected);

      OnCard drawn(cu::sample_scratch_bytes(rows));
      const std::vector<RowSampling> rule(static_cast<size_t>(rows), {.temperature = 1.0f, .noise = {.seed = 3}});
      sample(drawn.cpu(), expected.data(), logits.view(), choices, rule.data(), nullptr);
      ids = drawn.poisoned_i32(rows);
      sample(drawn.card(), ids, drawn.upload(logits), choices, drawn.upload(rule), nullptr);
      EXPECT_EQ(drawn.download(ids, rows), expected);
    }
  }
}

TEST(Scratch, OfTopK) {
  std::mt19937 generator(2);
  for (const int64_t choices : kSizes) {
    const int64_t k = std::min<int64_t>(choices, 40);
    const Matrix logits = Matrix::random(generator, 5, choices);
    OnCard on(cu::top_k_scratch_bytes(5, k, choices));
    std::vector<int32_t> expected(static_cast<size_t>(5 * k));
    Matrix values(5, k);
    top_k(on.cpu(), expected.data(), values.view(), logits.view(), choices);
    int32_t* ids = on.poisoned_i32(5 * k);
    top_k(on.card(), ids, on.upload(values), on.upload(logits), choices);
    EXPECT_EQ(on.download(ids, 5 * k), expected);
  }
}

TEST(Scratch, OfTheArgmaxOfAProduct) {
  std::mt19937 generator(3);
  for (const test::Format format : {test::Format::bf16, test::Format::f32}) {
    for (const int64_t rows : {1, 64, 130}) {
      OnCard on(cu::linear_argmax_scratch_bytes(rows));
      const test::StoredWeight weight(generator, format, 3000, 256);
      const TensorView x = on.upload(Matrix::random(generator, rows, 256));
      int32_t* ids = on.poisoned_i32(rows);
      linear_argmax(on.card(), {.ids = ids, .x = x, .weight = on.upload(weight.view()), .num_choices = 3000});
      for (const int32_t id : on.download(ids, rows)) EXPECT_TRUE(id >= 0 && id < 3000) << id;
    }
  }
}

TEST(Scratch, OfAttention) {
  const std::vector<test::SequenceSpec> specs{{1, 5000, 16}, {2, 0, 3}, {3, 900, 40}};
  for (const int32_t head_dim : {64, 256}) {
    test::PagedSequences pages(specs, 2, head_dim, 4);
    pages.fill();
    const BatchView batch = pages.batch();
    OnCard on(cu::attention_scratch_bytes(Card::device(), 2, head_dim, batch.page_table_stride));
    std::mt19937 generator(5);
    const Matrix q = Matrix::random(generator, batch.num_rows, 8 * int64_t{head_dim});
    const TensorView out = on.upload(Matrix(q.rows(), q.columns()));
    attention(
        on.card(),
        {.out = out, .q = on.upload(q), .kv = on.upload_bf16(pages.kv()), .batch = on.upload(batch), .num_heads = 8});
    const Matrix found = on.download(out);
    for (int64_t r = 0; r < found.rows(); ++r) EXPECT_TRUE(std::isfinite(found.row(r)[0])) << r;
  }
}

}  // namespace
}  // namespace blockdraft
