#include "ops/embedding.h"

#include <gtest/gtest.h>

#include "support/op_context.h"
#include "support/stored_weight.h"

namespace blockdraft {
namespace {

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
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::f8_e4m3}) {
    for (const int64_t width : {1, 7, 384, 5000}) {
      for (const float scale : {1.0f, 19.5f}) {
        const StoredWeight table(generator, dtype, 31, width, false, 1);
        const Matrix out = run(context, ids, table.view(), scale);
        for (size_t r = 0; r < ids.size(); ++r) {
          const std::vector<double> row = table.row(ids[r]);
          for (int64_t i = 0; i < width; ++i) {
            const double expected = row[static_cast<size_t>(i)] * static_cast<double>(scale);
            // Unscaled values are exact. 1e-45: the spacing of subnormal floats, which BF16 codes can be.
            const double tolerance =
                scale == 1.0f && dtype != DType::f8_e4m3 ? 0.0 : 1.3e-7 * std::abs(expected) + 1e-45;
            ASSERT_NEAR(static_cast<double>(out.row(static_cast<int64_t>(r))[i]), expected, tolerance);
          }
        }
      }
    }
  }
}

TEST(Embedding, BitsDoNotDependOnRowsOrThreads) {
  std::mt19937 generator(2);
  const StoredWeight table(generator, DType::f8_e4m3, 100, 300);
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
      ASSERT_TRUE(same_bits(out.row(static_cast<int64_t>(at)), expected.row(0), 300));
    }
  }
}

TEST(Embedding, NoRows) {
  std::mt19937 generator(3);
  OpContext context;
  const StoredWeight table(generator, DType::bf16, 4, 8);
  embedding(context, view_f32(static_cast<float*>(nullptr), Shape{0, 8}), nullptr, table.view(), 1.0f);
}

TEST(EmbeddingDeathTest, IdsOutsideTheTable) {
  std::mt19937 generator(4);
  OpContext context;
  const StoredWeight table(generator, DType::bf16, 4, 8);
  for (const int32_t id : {-1, 4}) {
    Matrix out(1, 8);
    EXPECT_DEATH(embedding(context, out.view(), &id, table.view(), 1.0f), "id >= 0 && id < table.out_features");
  }
}

}  // namespace
}  // namespace blockdraft
