#include "ops/qkv_finish.h"

#include <gtest/gtest.h>

#include "ops/kv_write.h"
#include "ops/rms_norm.h"
#include "ops/rope.h"
#include "support/paged_sequences.h"

namespace blockdraft {
namespace {

using test::Matrix;
using test::OpContext;
using test::PagedSequences;
using test::same_bits;

constexpr int32_t kHeads = 4;
constexpr int32_t kKvHeads = 2;

class QkvFinish : public ::testing::TestWithParam<int32_t> {
 protected:
  int64_t head_dim() const { return GetParam(); }
};

// q, k and v as columns of one matrix.
struct Columns {
  Columns(const Matrix& matrix, int64_t head_dim) : memory(matrix), q(kHeads * head_dim), kv(kKvHeads * head_dim) {}
  TensorView queries() { return columns_of(memory.view(), 0, q); }
  TensorView keys() { return columns_of(memory.view(), q, kv); }
  TensorView values() { return columns_of(memory.view(), q + kv, kv); }
  Matrix memory;
  int64_t q, kv;
};

bool same_pages(const PagedSequences& a, const PagedSequences& b, int64_t head_dim) {
  const auto bytes = static_cast<size_t>(a.kv().num_pages * kKvHeads * kPageSize * head_dim) * sizeof(float);
  return std::memcmp(a.kv().k, b.kv().k, bytes) == 0 && std::memcmp(a.kv().v, b.kv().v, bytes) == 0;
}

TEST_P(QkvFinish, IsNormsRopeAndTheWrite) {
  std::mt19937 generator(1);
  for (const bool has_norms : {true, false}) {
    OpContext context(2);
    const std::vector<test::SequenceSpec> specs{{1, 0, 1}, {2, 15, 3}, {3, 31, 9}};
    const PagedSequences pages(specs, kKvHeads, GetParam(), 9);
    const PagedSequences expected_pages(specs, kKvHeads, GetParam(), 9);
    const BatchView batch = pages.batch();
    const int64_t width = (kHeads + 2 * kKvHeads) * head_dim();
    Columns found(Matrix::random(generator, batch.num_rows, width, width + 3), head_dim());
    Columns expected = found;
    const Matrix norms = Matrix::random(generator, 2, head_dim());
    const Matrix table = Matrix::random(generator, batch.num_rows, head_dim());
    QkvFinishArgs args{.q = found.queries(),
                       .k = found.keys(),
                       .v = found.values(),
                       .eps = 1e-5f,
                       .rope = table.view(),
                       .kv = pages.kv(),
                       .batch = batch};
    if (has_norms) {
      args.q_norm = view_f32(norms.row(0), Shape{head_dim()});
      args.k_norm = view_f32(norms.row(1), Shape{head_dim()});
      rms_norm(context, expected.queries(), expected.queries(), args.q_norm, 1e-5f);
      rms_norm(context, expected.keys(), expected.keys(), args.k_norm, 1e-5f);
    }
    qkv_finish(context, args);
    rope(context, expected.queries(), table.view());
    rope(context, expected.keys(), table.view());
    kv_write(context, expected_pages.kv(), batch, expected.keys(), expected.values());
    for (int64_t r = 0; r < batch.num_rows; ++r) {
      EXPECT_TRUE(same_bits(found.queries().row(r), expected.queries().row(r), found.q)) << r;
    }
    EXPECT_TRUE(same_pages(pages, expected_pages, head_dim()));
    EXPECT_TRUE(found.memory.gaps_untouched());
  }
}

INSTANTIATE_TEST_SUITE_P(HeadDims, QkvFinish, ::testing::Values(2, 6, 64, 128));

TEST(QkvFinishDeathTest, OneNormAloneIsABug) {
  OpContext context;
  PagedSequences pages({{1, 0, 1}}, 1, 4, 1);
  Matrix rows(1, 4);
  const Matrix norm(1, 4);
  const QkvFinishArgs args{.q = rows.view(),
                           .k = rows.view(),
                           .v = rows.view(),
                           .q_norm = view_f32(norm.row(0), Shape{4}),
                           .rope = norm.view(),
                           .kv = pages.kv(),
                           .batch = pages.batch()};
  EXPECT_DEATH(qkv_finish(context, args), "q_norm");
}

}  // namespace
}  // namespace blockdraft
