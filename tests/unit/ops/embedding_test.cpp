#include "ops/embedding.h"

#include <gtest/gtest.h>

#include "support/op_context.h"
#include "support/stored_weight.h"

namespace blockdraft {
namespace {

using test::Format;
using test::Matrix;
using test::OpContext;
using test::same_bits;
using test::StoredWeight;

Matrix run(Context& context, const std::vector<int32_t>& ids, const WeightView& table, float scale) {
  Matrix out(static_cast<int64_t>(ids.size()), table.in_features, table.in_features + 2);
  embedding(context, out.view(), ids.data(), table, scale);
  EXPECT_TRUE(out.gaps_untouched());
  return out;
}

TEST(Embedding, RowsOfEveryType) {
  std::mt19937 generator(1);
  OpContext context(2);
  const std::vector<int32_t> ids{0, 30, 7, 7, 1};
  for (const Format format : test::kFormats) {
    for (const int64_t size : {1, 7, 384, 5000}) {
      const int64_t width = test::columns_for(format, size);
      for (const float scale : {1.0f, 19.5f}) {
        const StoredWeight table(generator, format, 31, width, false, 1);
        const Matrix out = run(context, ids, table.view(), scale);
        for (size_t r = 0; r < ids.size(); ++r) {
          const std::vector<double> row = table.row(ids[r]);
          for (int64_t i = 0; i < width; ++i) {
            const double expected = row[static_cast<size_t>(i)] * static_cast<double>(scale);
            // Unscaled values are exact. 1e-45: the spacing of subnormal floats, which BF16 codes can be.
            const bool exact = scale == 1.0f && table.view().dtype != DType::f8_e4m3 && format != Format::nvfp4;
            const double tolerance = exact ? 0.0 : 1.3e-7 * std::abs(expected) + 1e-45;
            ASSERT_NEAR(static_cast<double>(out.row(static_cast<int64_t>(r))[i]), expected, tolerance);
          }
        }
      }
    }
  }
}

class EmbeddingOfFormat : public ::testing::TestWithParam<Format> {};
INSTANTIATE_TEST_SUITE_P(Embedding, EmbeddingOfFormat, ::testing::ValuesIn(test::kFormats),
                         [](const auto& instance) { return test::name_of(instance.param); });

TEST_P(EmbeddingOfFormat, BitsDoNotDependOnRowsOrThreads) {
  std::mt19937 generator(2);
  const int64_t width = test::columns_for(GetParam(), 300);
  const StoredWeight table(generator, GetParam(), 100, width);
  OpContext one(1);
  const Matrix expected = run(one, {42}, table.view(), 3.0f);
  for (int num_threads = 1; num_threads <= 4; ++num_threads) {
    OpContext context(num_threads);
    for (size_t rows = 1; rows <= 64; ++rows) {
      std::vector<int32_t> ids(rows);
      for (int32_t& id : ids) id = static_cast<int32_t>(generator() % 100);
      const size_t at = generator() % rows;
      ids[at] = 42;
      const Matrix out = run(context, ids, table.view(), 3.0f);
      ASSERT_TRUE(same_bits(out.row(static_cast<int64_t>(at)), expected.row(0), width));
    }
  }
}

TEST(Embedding, NoRows) {
  std::mt19937 generator(3);
  OpContext context;
  const StoredWeight table(generator, Format::bf16, 4, 8);
  embedding(context, view_f32(static_cast<float*>(nullptr), Shape{0, 8}), nullptr, table.view(), 1.0f);
}

TEST(EmbeddingDeathTest, IdsOutsideTheTable) {
  std::mt19937 generator(4);
  OpContext context;
  const StoredWeight table(generator, Format::bf16, 4, 8);
  for (const int32_t id : {-1, 4}) {
    Matrix out(1, 8);
    EXPECT_DEATH(embedding(context, out.view(), &id, table.view(), 1.0f), "id >= 0 && id < table.out_features");
  }
}

}  // namespace
}  // namespace blockdraft
