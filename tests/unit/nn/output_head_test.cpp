#include "nn/output_head.h"

#include <cmath>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "ops/argmax.h"
#include "support/op_context.h"
#include "support/reference_ops.h"
#include "support/stored_weight.h"

namespace blockdraft::test {
namespace {

constexpr int64_t kVocab = 50;
constexpr int64_t kHidden = 24;

struct Fixture {
  std::mt19937 generator{5};
  StoredWeight weight{generator, Format::bf16, kVocab, kHidden};
  OpContext context;
  OutputHead head{.weight = weight.view(), .num_choices = kVocab};
};

double reference_logit(const Fixture& fixture, const float* hidden, int64_t id) {
  const double z = reference_dot(hidden, fixture.weight.row(id).data(), kHidden).value *
                   static_cast<double>(fixture.head.multiplier);
  const auto softcap = static_cast<double>(fixture.head.softcap);
  return softcap == 0.0 ? z : softcap * std::tanh(z / softcap);
}

TEST(OutputHead, FieldFault5_LogitsAreScaledAndCapped) {
  Fixture fixture;
  fixture.context->isa = float32_isa();
  for (const float multiplier : {1.0f, 0.25f}) {
    for (const float softcap : {0.0f, 3.0f}) {
      fixture.head.multiplier = multiplier;
      fixture.head.softcap = softcap;
      const Matrix hidden = Matrix::random(fixture.generator, 3, kHidden);
      Matrix logits(3, kVocab);
      head_logits(fixture.context, logits.view(), hidden.view(), fixture.head);
      for (int64_t row = 0; row < 3; ++row) {
        for (int64_t id = 0; id < kVocab; ++id) {
          EXPECT_NEAR(static_cast<double>(logits.row(row)[id]), reference_logit(fixture, hidden.row(row), id), 1e-4);
        }
      }
    }
  }
}

// More rows than are made at a time, and an odd rest.
TEST(OutputHead, ChoosesTheSameInPartsAsInOne) {
  Fixture fixture;
  const int64_t rows = 2 * kLogitRows + 3;
  const Matrix hidden = Matrix::random(fixture.generator, rows, kHidden);
  std::vector<int32_t> ids(static_cast<size_t>(rows));
  head_argmax(fixture.context, ids.data(), hidden.view(), fixture.head);
  EXPECT_LE(fixture.context->arena->peak_bytes(), head_argmax_scratch_bytes(fixture.head.weight, rows));
  for (int64_t row = 0; row < rows; ++row) {
    int64_t best = 0;
    for (int64_t id = 1; id < kVocab; ++id) {
      if (reference_logit(fixture, hidden.row(row), id) > reference_logit(fixture, hidden.row(row), best)) best = id;
    }
    EXPECT_EQ(ids[static_cast<size_t>(row)], best) << "row " << row;
  }
}

// Bit for bit what argmax finds in rows of logits, whatever the rows and threads; codes of few values, so that ties are
// the rule.
TEST(OutputHead, ChoosesWhatArgmaxFindsInTheLogits) {
  std::mt19937 generator(7);
  const int64_t vocab = 3001;
  StoredWeight weight(generator, Format::bf16, vocab, 16);
  for (const int64_t rows : {0, 1, 2, 5, 16, 64, 65}) {
    Matrix hidden(rows, 16, 19);
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t i = 0; i < 16; ++i)
        hidden.row(r)[i] = r % 7 == 3 ? 0.0f : static_cast<float>(generator() % 3) - 1.0f;
      if (r % 11 == 5) hidden.row(r)[r % 16] = std::nanf("");
    }
    for (int num_threads = 1; num_threads <= 4; ++num_threads) {
      OpContext context(num_threads);
      for (const float softcap : {0.0f, 1e-3f}) {  // with a small one most logits are the cap, or minus it
        for (const int64_t num_choices : {int64_t{1}, int64_t{17}, vocab}) {
          const OutputHead head{
              .weight = weight.view(), .multiplier = 0.75f, .softcap = softcap, .num_choices = num_choices};
          std::vector<int32_t> ids(static_cast<size_t>(rows), -7), expected = ids;
          head_argmax(context, ids.data(), hidden.view(), head);
          EXPECT_LE(context->arena->peak_bytes(), head_argmax_scratch_bytes(head.weight, rows));
          OpContext other(2);
          Matrix logits(rows, vocab);
          head_logits(other, logits.view(), hidden.view(), head);
          argmax(other, expected.data(), logits.view(), num_choices);
          ASSERT_EQ(ids, expected) << rows << " rows, " << num_threads << " threads, softcap " << softcap;
        }
      }
    }
  }
}

TEST(OutputHead, NeverChoosesPadding) {
  Fixture fixture;
  const Matrix hidden = Matrix::random(fixture.generator, 60, kHidden);
  std::vector<int32_t> all(60), limited(60);
  head_argmax(fixture.context, all.data(), hidden.view(), fixture.head);
  fixture.head.num_choices = 7;
  head_argmax(fixture.context, limited.data(), hidden.view(), fixture.head);
  int num_moved = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    EXPECT_LT(limited[i], 7);
    if (all[i] < 7) {
      EXPECT_EQ(limited[i], all[i]);
    } else {
      ++num_moved;
    }
  }
  EXPECT_GT(num_moved, 20);
}

TEST(OutputHead, TellsOfLogitsThatAreNotNumbers) {
  Fixture fixture;
  Matrix hidden = Matrix::random(fixture.generator, 2, kHidden);
  hidden.row(1)[3] = std::nanf("");
  std::vector<int32_t> ids(2);
  for (const float softcap : {0.0f, 3.0f}) {
    fixture.head.softcap = softcap;
    head_argmax(fixture.context, ids.data(), hidden.view(), fixture.head);
    EXPECT_NE(ids[0], kNotANumber);
    EXPECT_EQ(ids[1], kNotANumber);
  }
}

}  // namespace
}  // namespace blockdraft::test
