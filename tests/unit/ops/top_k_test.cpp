#include "ops/top_k.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include <gtest/gtest.h>

#include "ops/argmax.h"
#include "support/op_context.h"

namespace blockdraft {
namespace {

using test::Matrix;
using test::OpContext;
using test::same_bits;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr int32_t kUntouched = -7;

struct TopK {
  std::vector<int32_t> ids;
  Matrix values;

  std::vector<int32_t> ids_of(int64_t r) const {
    const int64_t k = values.columns();
    return {ids.begin() + r * k, ids.begin() + (r + 1) * k};
  }
};

TopK run(Context& context, const Matrix& logits, int64_t num_choices, int64_t k) {
  TopK result{std::vector<int32_t>(static_cast<size_t>(logits.rows() * k), kUntouched),
              Matrix(logits.rows(), k, k + 2)};
  top_k(context, result.ids.data(), result.values.view(), logits.view(), num_choices);
  EXPECT_TRUE(result.values.gaps_untouched());
  return result;
}

// The ids below num_choices in the order of (logit descending, id ascending).
std::vector<int32_t> sorted_ids(const float* row, int64_t num_choices) {
  std::vector<int32_t> ids(static_cast<size_t>(num_choices));
  std::iota(ids.begin(), ids.end(), 0);
  std::sort(ids.begin(), ids.end(), [row](int32_t a, int32_t b) { return row[a] != row[b] ? row[a] > row[b] : a < b; });
  return ids;
}

void expect_sorted(const TopK& result, const Matrix& logits, int64_t num_choices) {
  const auto k = static_cast<size_t>(result.values.columns());
  for (int64_t r = 0; r < logits.rows(); ++r) {
    std::vector<int32_t> expected = sorted_ids(logits.row(r), num_choices);
    expected.resize(k);
    ASSERT_EQ(result.ids_of(r), expected) << "row " << r << ", " << k << " of " << num_choices;
    for (size_t i = 0; i < k; ++i) {
      ASSERT_TRUE(same_bits(result.values.row(r) + i, logits.row(r) + expected[i], 1))
          << "row " << r << ", place " << i;
    }
  }
}

// Logits of which about as many are equal as num_values says.
Matrix coarse_logits(std::mt19937& generator, int64_t rows, int64_t columns, uint32_t num_values) {
  Matrix logits(rows, columns, columns + 3);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) logits.row(r)[c] = static_cast<float>(generator() % num_values) - 50.0f;
  }
  return logits;
}

TEST(TopK, EveryKFromOneToAllChoices) {
  std::mt19937 generator(1);
  OpContext context(2);
  for (const uint32_t num_values : {1u, 2u, 7u, 1000000u}) {
    const Matrix logits = coarse_logits(generator, 3, 40, num_values);
    for (const int64_t num_choices : {1, 2, 17, 39, 40}) {
      for (int64_t k = 1; k <= num_choices; ++k)
        expect_sorted(run(context, logits, num_choices, k), logits, num_choices);
    }
  }
}

TEST(TopK, VocabulariesThatAreNoMultipleOfSixteen) {
  std::mt19937 generator(2);
  OpContext context(3);
  for (const int64_t num_choices : {1001, 4097, 20011}) {
    for (const uint32_t num_values : {100u, 1000000u}) {
      const Matrix logits = coarse_logits(generator, 8, num_choices + 9, num_values);
      for (const int64_t k : {1, 16, 64}) expect_sorted(run(context, logits, num_choices, k), logits, num_choices);
    }
  }
}

TEST(TopK, AscendingAndDescendingLogits) {
  OpContext context;
  Matrix logits(2, 300);
  for (int64_t c = 0; c < 300; ++c) {
    logits.row(0)[c] = static_cast<float>(c);
    logits.row(1)[c] = -static_cast<float>(c);
  }
  const TopK result = run(context, logits, 300, 4);
  EXPECT_EQ(result.ids_of(0), (std::vector<int32_t>{299, 298, 297, 296}));
  EXPECT_EQ(result.ids_of(1), (std::vector<int32_t>{0, 1, 2, 3}));
}

TEST(TopK, EqualLogitsAtTheLastPlaceKeepTheSmallerId) {
  OpContext context;
  Matrix logits(1, 8);
  const float values[] = {0.0f, 1.0f, 5.0f, 1.0f, 5.0f, 1.0f, -0.0f, 9.0f};
  std::copy_n(values, 8, logits.row(0));
  EXPECT_EQ(run(context, logits, 8, 4).ids, (std::vector<int32_t>{7, 2, 4, 1}));
  EXPECT_EQ(run(context, logits, 8, 5).ids, (std::vector<int32_t>{7, 2, 4, 1, 3}));
  // The two zeros are equal whatever their signs.
  EXPECT_EQ(run(context, logits, 8, 7).ids, (std::vector<int32_t>{7, 2, 4, 1, 3, 5, 0}));
}

TEST(TopK, Infinities) {
  OpContext context;
  Matrix logits(2, 6);
  std::fill_n(logits.row(0), 6, -kInfinity);
  std::fill_n(logits.row(1), 6, -kInfinity);
  logits.row(1)[3] = kInfinity;
  logits.row(1)[5] = -3e38f;
  const TopK result = run(context, logits, 6, 3);
  EXPECT_EQ(result.ids_of(0), (std::vector<int32_t>{0, 1, 2}));
  EXPECT_EQ(result.ids_of(1), (std::vector<int32_t>{3, 5, 0}));
  expect_sorted(result, logits, 6);
}

TEST(TopK, FieldFault8_NanAnywhereIsReportedAndNotTurnedIntoTheFirstIds) {
  std::mt19937 generator(3);
  OpContext context(2);
  for (const int64_t choices : {1, 5, 9001}) {
    for (const int64_t k : {int64_t{1}, std::min<int64_t>(choices, 16)}) {
      for (const int64_t at : {int64_t{0}, choices / 2, choices - 1}) {
        for (const float nan : {std::nanf(""), -std::nanf("")}) {
          Matrix logits = coarse_logits(generator, 3, choices, 1000);
          logits.row(1)[at] = nan;
          const TopK result = run(context, logits, choices, k);
          ASSERT_EQ(result.ids_of(1), std::vector<int32_t>(static_cast<size_t>(k), kNotANumber)) << at;
          for (const int64_t r : {0, 2}) {
            std::vector<int32_t> expected = sorted_ids(logits.row(r), choices);
            expected.resize(static_cast<size_t>(k));
            ASSERT_EQ(result.ids_of(r), expected);
          }
        }
      }
    }
  }
}

TEST(TopK, ColumnsBeyondTheChoicesAreNeitherChosenNorChecked) {
  std::mt19937 generator(4);
  OpContext context;
  Matrix logits = coarse_logits(generator, 2, 100, 10);
  logits.row(0)[64] = 900.0f;
  logits.row(1)[64] = kInfinity;
  logits.row(1)[99] = std::nanf("");
  for (const int64_t k : {1, 16, 64}) expect_sorted(run(context, logits, 64, k), logits, 64);
}

TEST(TopK, TheFirstPlaceIsTheArgmax) {
  std::mt19937 generator(5);
  OpContext context(2);
  const Matrix logits = coarse_logits(generator, 17, 5003, 200);
  std::vector<int32_t> best(17);
  argmax(context, best.data(), logits.view(), 5000);
  EXPECT_EQ(run(context, logits, 5000, 1).ids, best);
  const TopK sixteen = run(context, logits, 5000, 16);
  for (int64_t r = 0; r < 17; ++r) EXPECT_EQ(sixteen.ids_of(r)[0], best[static_cast<size_t>(r)]);
}

TEST(TopK, NoRows) {
  OpContext context;
  Matrix values(0, 4);
  const Matrix logits(0, 10);
  top_k(context, nullptr, values.view(), logits.view(), 10);
}

TEST(TopK, ResultsDoNotDependOnRowsPositionCompanionsOrThreads) {
  std::mt19937 generator(6);
  OpContext one(1);
  const Matrix probe = coarse_logits(generator, 1, 1500, 90);
  const TopK expected = run(one, probe, 1500, 16);
  for (int num_threads = 1; num_threads <= 4; ++num_threads) {
    OpContext context(num_threads);
    for (int64_t rows = 1; rows <= 64; ++rows) {
      Matrix logits = coarse_logits(generator, rows, 1500, 90);
      const int64_t at = static_cast<int64_t>(generator()) % rows;
      std::copy_n(probe.row(0), 1500, logits.row(at));
      const TopK result = run(context, logits, 1500, 16);
      ASSERT_EQ(result.ids_of(at), expected.ids);
      ASSERT_TRUE(same_bits(result.values.row(at), expected.values.row(0), 16));
    }
  }
}

TEST(TopKDeathTest, MorePlacesThanChoices) {
  OpContext context;
  const Matrix logits(1, 10);
  EXPECT_DEATH(run(context, logits, 4, 5), "num_choices");
  EXPECT_DEATH(run(context, logits, 11, 5), "num_choices");
}

}  // namespace
}  // namespace blockdraft
