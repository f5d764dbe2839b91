#include "ops/argmax.h"

#include <algorithm>
#include <limits>

#include <gtest/gtest.h>

#include "support/op_context.h"

namespace blockdraft {
namespace {

using test::Matrix;
using test::OpContext;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<int32_t> run(Context& context, const Matrix& logits, int64_t num_choices) {
  std::vector<int32_t> ids(static_cast<size_t>(logits.rows()), -7);
  argmax(context, ids.data(), logits.view(), num_choices);
  return ids;
}

int32_t reference(const float* row, int64_t count) {
  if (std::any_of(row, row + count, [](float value) { return std::isnan(value); })) return kNotANumber;
  return static_cast<int32_t>(std::max_element(row, row + count) - row);
}

TEST(Argmax, MatchesTheReferenceOnEveryThreadCount) {
  std::mt19937 generator(1);
  for (int num_threads = 1; num_threads <= 4; ++num_threads) {
    OpContext context(num_threads);
    for (const int64_t choices : {1, 2, 3, 4, 5, 7, 64, 2049, 4097, 20011, 151936}) {
      for (const int64_t rows : {0, 1, 3, 17}) {
        if (choices > 100000 && rows > 3) continue;  // the same code as 20011 choices
        // Few different values, so that ties are the rule.
        Matrix logits(rows, choices, choices + 3);
        for (int64_t r = 0; r < rows; ++r) {
          for (int64_t c = 0; c < choices; ++c) logits.row(r)[c] = static_cast<float>(generator() % 1000) - 700.0f;
        }
        const auto ids = run(context, logits, choices);
        for (int64_t r = 0; r < rows; ++r) {
          ASSERT_EQ(ids[static_cast<size_t>(r)], reference(logits.row(r), choices)) << choices << " choices";
        }
      }
    }
  }
}

TEST(Argmax, TheLowestIndexWinsATie) {
  OpContext context(3);
  Matrix logits(1, 10000);
  for (const int64_t first : {0, 1, 999, 2047, 2048, 5000, 9998}) {
    std::fill_n(logits.row(0), 10000, -1.0f);
    logits.row(0)[first] = 3.0f;
    logits.row(0)[9999] = 3.0f;
    EXPECT_EQ(run(context, logits, 10000)[0], first);
  }
  std::fill_n(logits.row(0), 10000, 0.0f);
  EXPECT_EQ(run(context, logits, 10000)[0], 0);
  std::fill_n(logits.row(0), 10000, -0.0f);
  logits.row(0)[4000] = 0.0f;  // equal to -0
  EXPECT_EQ(run(context, logits, 10000)[0], 0);
}

TEST(Argmax, NanAnywhereIsReported) {
  OpContext context(2);
  for (const int64_t choices : {1, 5, 9001}) {
    for (const int64_t at : {int64_t{0}, choices / 2, choices - 1}) {
      for (const float nan : {std::nanf(""), -std::nanf("")}) {
        Matrix logits(3, choices);
        for (int64_t r = 0; r < 3; ++r) std::fill_n(logits.row(r), choices, kInfinity);
        logits.row(1)[at] = nan;
        EXPECT_EQ(run(context, logits, choices), (std::vector<int32_t>{0, kNotANumber, 0})) << at;
      }
    }
  }
}

TEST(Argmax, Infinities) {
  OpContext context;
  Matrix logits(3, 9);
  for (int64_t r = 0; r < 3; ++r) std::fill_n(logits.row(r), 9, -kInfinity);
  logits.row(1)[6] = -3e38f;
  logits.row(2)[8] = kInfinity;
  EXPECT_EQ(run(context, logits, 9), (std::vector<int32_t>{0, 6, 8}));
}

TEST(Argmax, ColumnsBeyondTheChoicesAreNeitherChosenNorChecked) {
  OpContext context;
  Matrix logits(1, 100);
  std::fill_n(logits.row(0), 100, 1.0f);
  logits.row(0)[42] = 2.0f;
  logits.row(0)[64] = 9.0f;
  logits.row(0)[99] = std::nanf("");
  EXPECT_EQ(run(context, logits, 64)[0], 42);
}

}  // namespace
}  // namespace blockdraft
