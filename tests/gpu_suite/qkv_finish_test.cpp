// Norms, rotation and the write to the pages in one kernel: against the three ops that it stands for, and the CPU.
#include "ops/qkv_finish.h"

#include <cmath>

#include <gtest/gtest.h>

#include "gpu_suite/card.h"
#include "ops/kv_write.h"
#include "ops/rms_norm.h"
#include "ops/rope.h"
#include "support/paged_sequences.h"

namespace blockdraft {
namespace {

using test::Matrix;
using test::OnCard;
using test::PagedSequences;
using test::relative_error;
using test::same_bits;
using test::SequenceSpec;

constexpr int32_t kHeads = 5;
constexpr int32_t kKvHeads = 2;
constexpr float kEps = 1e-6f;

// Arguments on the CPU; `gap` columns between the rows of q, k and v decide whether vectors can be loaded.
struct Inputs {
  Inputs(uint32_t seed, int64_t rows, int64_t dim, int64_t gap, bool with_norms)
      : head_dim(dim), has_norms(with_norms), qkv(rows, width(), width() + gap), norms(2, dim), rope(rows, dim) {
    std::mt19937 generator(seed);
    qkv = Matrix::random(generator, rows, width(), width() + gap);
    norms = Matrix::random(generator, 2, dim);
    rope = Matrix::random(generator, rows, dim);
  }
  int64_t width() const { return (kHeads + 2 * kKvHeads) * head_dim; }

  int64_t head_dim;
  bool has_norms;
  Matrix qkv, norms, rope;
};

QkvFinishArgs args_of(const Inputs& in, const TensorView& qkv, const float* norms, const ConstTensorView& rope,
                      const PagedKvView& kv, const BatchView& batch) {
  QkvFinishArgs args{.q = columns_of(qkv, 0, kHeads * in.head_dim),
                     .k = columns_of(qkv, kHeads * in.head_dim, kKvHeads * in.head_dim),
                     .v = columns_of(qkv, (kHeads + kKvHeads) * in.head_dim, kKvHeads * in.head_dim),
                     .eps = kEps,
                     .rope = rope,
                     .kv = kv,
                     .batch = batch};
  if (in.has_norms) {
    args.q_norm = view_f32(norms, Shape{in.head_dim});
    args.k_norm = view_f32(norms + in.head_dim, Shape{in.head_dim});
  }
  return args;
}

struct Result {
  Matrix q;  // with k and v behind it
  std::vector<uint16_t> keys, values;
};

using Op = void (*)(Context&, const QkvFinishArgs&);

void three_ops(Context& context, const QkvFinishArgs& args) {
  if (args.q_norm.data != nullptr) {
    rms_norm(context, args.q, args.q, args.q_norm, args.eps);
    rms_norm(context, args.k, args.k, args.k_norm, args.eps);
  }
  rope(context, args.q, args.rope);
  rope(context, args.k, args.rope);
  kv_write(context, args.kv, args.batch, args.k, args.v);
}

Result run(Op op, const Inputs& in, const PagedSequences& pages, const BatchView& batch) {
  OnCard on;
  const PagedKvView kv = on.upload_bf16(pages.kv());
  const TensorView qkv = on.upload(in.qkv);
  op(on.card(), args_of(in, qkv, on.upload(in.norms).f32(), on.upload(in.rope), kv, on.upload(batch)));
  const int64_t size = int64_t{kv.num_pages} * kKvHeads * kPageSize * in.head_dim;
  return {on.download(qkv), on.download(static_cast<const uint16_t*>(kv.k), size),
          on.download(static_cast<const uint16_t*>(kv.v), size)};
}

// The columns of k are undefined afterwards.
void expect_same(const Result& found, const Result& expected, const Inputs& in) {
  EXPECT_TRUE(found.q.gaps_untouched());
  for (int64_t r = 0; r < found.q.rows(); ++r) {
    EXPECT_TRUE(same_bits(found.q.row(r), expected.q.row(r), kHeads * in.head_dim)) << "row " << r;
  }
  EXPECT_EQ(found.keys, expected.keys);
  EXPECT_EQ(found.values, expected.values);
}

const std::vector<SequenceSpec> kSpecs{{1, 0, 1}, {2, 15, 3}, {3, 31, 20}, {4, 100, 17, 5}};

TEST(QkvFinish, HasTheBitsOfTheThreeOps) {
  for (const int32_t head_dim : {64, 128, 256, 80, 6, 130}) {
    for (const int64_t gap : {0, 4, 1}) {
      for (const bool has_norms : {true, false}) {
        const PagedSequences pages(kSpecs, kKvHeads, head_dim, 9);
        const BatchView batch = pages.batch();
        const Inputs in(1, batch.num_rows, head_dim, gap, has_norms);
        SCOPED_TRACE(testing::Message() << "head_dim " << head_dim << ", gap " << gap << ", norms " << has_norms);
        expect_same(run(qkv_finish, in, pages, batch), run(three_ops, in, pages, batch), in);
      }
    }
  }
}

TEST(QkvFinish, MatchesTheCpu) {
  for (const int32_t head_dim : {64, 128, 256, 96}) {
    const PagedSequences pages(kSpecs, kKvHeads, head_dim, 3);
    const BatchView batch = pages.batch();
    Inputs in(2, batch.num_rows, head_dim, 0, true);
    const Result found = run(qkv_finish, in, pages, batch);
    OnCard on;
    qkv_finish(on.cpu(), args_of(in, in.qkv.view(), in.norms.row(0), in.rope.view(), pages.kv(), batch));
    const int64_t columns = kHeads * in.head_dim;
    Matrix q(batch.num_rows, columns);
    Matrix expected(batch.num_rows, columns);
    for (int64_t r = 0; r < batch.num_rows; ++r) {
      std::copy_n(found.q.row(r), columns, q.row(r));
      std::copy_n(in.qkv.row(r), columns, expected.row(r));
    }
    EXPECT_LT(relative_error(q, expected), 2e-6);
    const auto size = static_cast<int64_t>(found.keys.size());
    Matrix keys(1, size);
    Matrix expected_keys(1, size);
    for (int64_t i = 0; i < size; ++i) {
      keys.row(0)[i] = float_from_bf16(found.keys[static_cast<size_t>(i)]);
      expected_keys.row(0)[i] = float_from_bf16(bf16_from_float(pages.kv().k_f32()[i]));
      const float value = pages.kv().v_f32()[i];
      ASSERT_EQ(found.values[static_cast<size_t>(i)], value == value ? bf16_from_float(value) : 0x7fc0) << i;
    }
    EXPECT_LT(relative_error(keys, expected_keys), 8e-3);  // a sum in another order may round to the neighbour
  }
}

TEST(QkvFinish, ARowHasTheSameBitsAlone) {
  const std::vector<SequenceSpec> specs{{1, 40, 12}};
  for (const int32_t head_dim : {64, 128, 256, 80}) {
    const PagedSequences pages(specs, kKvHeads, head_dim, 3);
    const Inputs in(4, 12, head_dim, 0, true);
    const Result together = run(qkv_finish, in, pages, pages.batch());
    for (const int32_t row : {0, 7, 11}) {
      Inputs one(4, 1, head_dim, 0, true);
      std::copy_n(in.qkv.row(row), in.width(), one.qkv.row(0));
      one.norms = in.norms;
      std::copy_n(in.rope.row(row), head_dim, one.rope.row(0));
      const int32_t position = 40 + row;
      const int32_t first_row[] = {0, 1};
      BatchView batch = pages.batch();
      batch.num_rows = 1;
      batch.positions = &position;
      batch.first_row = first_row;
      const Result alone = run(qkv_finish, one, pages, batch);
      EXPECT_TRUE(same_bits(alone.q.row(0), together.q.row(row), kHeads * head_dim)) << row;
      for (int32_t head = 0; head < kKvHeads; ++head) {
        const auto at = pages.offset(0, position, head);
        for (int64_t i = at; i < at + head_dim; ++i) {
          ASSERT_EQ(alone.keys[static_cast<size_t>(i)], together.keys[static_cast<size_t>(i)]);
          ASSERT_EQ(alone.values[static_cast<size_t>(i)], together.values[static_cast<size_t>(i)]);
        }
      }
    }
  }
}

TEST(QkvFinish, ValuesThatAreNotFiniteBreakTheirKey) {
  for (const int32_t head_dim : {64, 128, 256, 80}) {
    const PagedSequences pages(kSpecs, kKvHeads, head_dim, 9);
    const BatchView batch = pages.batch();
    Inputs in(5, batch.num_rows, head_dim, 0, true);
    const int64_t values = (kHeads + kKvHeads) * head_dim;
    in.qkv.row(2)[values + head_dim - 1] = std::nanf("");
    in.qkv.row(9)[values + head_dim] = HUGE_VALF;
    in.qkv.row(10)[values] = 3.4e38f;  // infinite as BF16
    SCOPED_TRACE(testing::Message() << "head_dim " << head_dim);
    expect_same(run(qkv_finish, in, pages, batch), run(three_ops, in, pages, batch), in);
  }
}

// A graph may be replayed with fewer rows than it was captured with.
TEST(QkvFinish, RowsOfNoSequenceLeaveNothing) {
  for (const int32_t head_dim : {64, 128, 80}) {
    const PagedSequences pages(kSpecs, kKvHeads, head_dim, 9);
    BatchView batch = pages.batch();
    std::vector<int32_t> positions(batch.positions, batch.positions + batch.num_rows);
    positions.insert(positions.end(), {-1, 1 << 30, 0});
    batch.positions = positions.data();
    batch.num_rows += 3;
    const Inputs in(6, batch.num_rows, head_dim, 0, true);
    expect_same(run(qkv_finish, in, pages, batch), run(three_ops, in, pages, batch), in);
  }
}

}  // namespace
}  // namespace blockdraft
