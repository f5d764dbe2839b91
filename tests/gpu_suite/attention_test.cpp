// Attention of the card against that of the CPU over the same rounded keys and values, and its bits against themselves.
#include "ops/attention.h"

#include <cmath>

#include <gtest/gtest.h>

#include "gpu_suite/card.h"
#include "ops/cuda/support.h"
#include "ops/kv_write.h"
#include "support/paged_sequences.h"

namespace blockdraft {
namespace {

using test::Card;
using test::Matrix;
using test::OnCard;
using test::PagedSequences;
using test::same_bits;
using test::SequenceSpec;

// Queries and weights are rounded to BF16, too.
constexpr double kTolerance = 8e-3;

struct Heads {
  int32_t num_heads;
  int32_t num_kv_heads;
  int32_t head_dim;
  int64_t columns() const { return int64_t{num_heads} * head_dim; }
  float scale() const { return 1.0f / std::sqrt(static_cast<float>(head_dim)); }
};

struct Mask {
  bool causal = true;
  int32_t window = 0;
};

Matrix queries_of(const std::vector<SequenceSpec>& specs, const Heads& heads, int64_t gap) {
  int64_t rows = 0;
  for (const SequenceSpec& spec : specs) rows += spec.rows;
  Matrix q(rows, heads.columns(), heads.columns() + gap);
  int64_t row = 0;
  for (const SequenceSpec& spec : specs) {
    // Queries of a position are the same in every batch.
    for (int32_t p = spec.first_position; p < spec.end(); ++p, ++row) {
      std::mt19937 generator(spec.seed * 1000003 + static_cast<uint32_t>(p));
      const Matrix one = Matrix::random(generator, 1, heads.columns());
      std::copy_n(one.row(0), heads.columns(), q.row(row));
    }
  }
  return q;
}

// `stride`, if larger than the batch's own, says how long a sequence may become: it decides how the work is split.
Matrix run(const std::vector<SequenceSpec>& specs, const Heads& heads, const Mask& mask, Matrix* expected = nullptr,
           uint32_t page_order_seed = 1) {
  OnCard on(size_t{256} << 20);
  PagedSequences pages(specs, heads.num_kv_heads, heads.head_dim, page_order_seed);
  pages.fill();
  const Matrix q = queries_of(specs, heads, 2);
  const TensorView out = on.upload(Matrix(q.rows(), q.columns(), q.columns() + 4));
  AttentionArgs args{.out = out,
                     .q = on.upload(q),
                     .kv = on.upload_bf16(pages.kv()),
                     .batch = on.upload(pages.batch()),
                     .num_heads = heads.num_heads,
                     .causal = mask.causal,
                     .window = mask.window,
                     .scale = heads.scale()};
  attention(on.card(), args);
  const Matrix found = on.download(out);
  EXPECT_TRUE(found.gaps_untouched());
  if (expected != nullptr) {
    const PagedKvView& kv = pages.kv();
    const int64_t size = int64_t{kv.num_pages} * kv.num_kv_heads * kPageSize * kv.head_dim;
    test::round_to_bf16(kv.k_f32(), size);
    test::round_to_bf16(kv.v_f32(), size);
    Matrix rounded_q = q;
    for (int64_t r = 0; r < q.rows(); ++r) test::round_to_bf16(rounded_q.row(r), q.columns());
    args.q = rounded_q.view();
    args.out = expected->view();
    args.kv = kv;
    args.batch = pages.batch();
    attention(on.cpu(), args);
  }
  return found;
}

void expect_like_the_cpu(const std::vector<SequenceSpec>& specs, const Heads& heads, const Mask& mask) {
  int64_t rows = 0;
  for (const SequenceSpec& spec : specs) rows += spec.rows;
  Matrix expected(rows, heads.columns());
  const Matrix found = run(specs, heads, mask, &expected);
  EXPECT_LT(test::relative_error(found, expected), kTolerance)
      << heads.num_heads << "/" << heads.num_kv_heads << " heads of " << heads.head_dim
      << (mask.causal ? ", causal" : "") << ", window " << mask.window << ", " << rows << " rows";
}

// Keys or values that are not numbers, or infinite, concern the rows that see them, and no other row.
TEST(Attention, NotANumberReachesThoseWhoSeeIt) {
  const Heads heads{4, 2, 64};
  const std::vector<SequenceSpec> specs{{1, 120, 16}};
  PagedSequences pages(specs, heads.num_kv_heads, heads.head_dim, 5);
  pages.fill();
  std::mt19937 generator(6);
  const Matrix k = Matrix::random(generator, 16, int64_t{heads.num_kv_heads} * heads.head_dim);
  const Matrix v = Matrix::random(generator, 16, int64_t{heads.num_kv_heads} * heads.head_dim);
  const Matrix q = queries_of(specs, heads, 0);
  const auto attend = [&](const Matrix& keys, const Matrix& values) {
    OnCard on;
    const PagedKvView kv = on.upload_bf16(pages.kv());
    const BatchView batch = on.upload(pages.batch());
    const TensorView out = on.upload(Matrix(16, heads.columns()));
    kv_write(on.card(), kv, batch, on.upload(keys), on.upload(values));
    attention(on.card(), {.out = out, .q = on.upload(q), .kv = kv, .batch = batch, .num_heads = 4});
    return on.download(out);
  };
  const Matrix expected = attend(k, v);
  for (const int32_t bad : {120, 127, 128, 131, 135}) {
    for (const bool is_key : {true, false}) {
      for (const float value : {std::nanf(""), HUGE_VALF}) {
        Matrix keys = k;
        Matrix values = v;
        for (int32_t head = 0; head < heads.num_kv_heads; ++head) {
          (is_key ? keys : values).row(bad - 120)[head * heads.head_dim + 3] = value;
        }
        const Matrix found = attend(keys, values);
        for (int32_t r = 0; r < 16; ++r) {
          const bool same = same_bits(found.row(r), expected.row(r), heads.columns());
          EXPECT_EQ(same, 120 + r < bad) << "row " << r << ", position " << bad << (is_key ? ", key" : ", value");
        }
      }
    }
  }
}

const std::vector<Mask> kMasks{{true, 0}, {false, 0}, {true, 1}, {true, 5}, {false, 5}, {true, 200}, {false, 200}};

TEST(Attention, MatchesTheCpuInEveryHeadLayout) {
  const std::vector<SequenceSpec> specs{{1, 0, 1}, {2, 120, 17}, {3, 255, 2}, {4, 0, 33}};
  for (const Heads& heads : {Heads{1, 1, 64}, Heads{8, 2, 128}, Heads{3, 1, 128}, Heads{40, 1, 64}, Heads{7, 7, 256},
                             Heads{5, 1, 256}, Heads{64, 1, 128}, Heads{16, 1, 256}}) {
    for (const Mask& mask : {Mask{true, 0}, Mask{false, 20}}) expect_like_the_cpu(specs, heads, mask);
  }
}

TEST(Attention, MatchesTheCpuUnderEveryMask) {
  const std::vector<SequenceSpec> specs{{1, 0, 20}, {2, 112, 32}, {3, 127, 1}, {4, 128, 1}, {5, 383, 16}};
  for (const Mask& mask : kMasks) {
    for (const int32_t head_dim : {64, 128, 256}) expect_like_the_cpu(specs, {4, 2, head_dim}, mask);
  }
}

TEST(Attention, MatchesTheCpuAcrossGroups) {
  for (const Mask& mask : {Mask{true, 0}, Mask{false, 0}, Mask{true, 300}, Mask{true, 3000}}) {
    expect_like_the_cpu({{1, 4090, 17}, {2, 8191, 2}, {3, 1023, 2}}, {8, 2, 128}, mask);
    expect_like_the_cpu({{1, 9000, 1}}, {8, 2, 64}, mask);
    expect_like_the_cpu({{1, 9000, 16}}, {4, 1, 256}, mask);
  }
}

// So many rows that no unit is split: groups are merged in the output.
TEST(Attention, MatchesTheCpuWithManyRows) {
  expect_like_the_cpu({{1, 2000, 256}}, {16, 8, 128}, {true, 0});
  expect_like_the_cpu({{1, 2000, 256}}, {16, 8, 128}, {true, 1500});
  std::vector<SequenceSpec> specs;
  for (uint32_t s = 0; s < 140; ++s)
    specs.push_back({s + 1, static_cast<int32_t>(7 * s), 1 + static_cast<int32_t>(s % 3)});
  expect_like_the_cpu(specs, {4, 2, 64}, {true, 0});
}

TEST(Attention, PagesBelowTheWindowAreNotRead) {
  const Heads heads{4, 2, 64};
  for (const int32_t window : {1, 16, 40, 130}) {
    for (const bool causal : {true, false}) {
      const std::vector<SequenceSpec> kept{{7, 300, 9}};
      std::vector<SequenceSpec> freed = kept;
      freed[0].freed_pages = (300 - window + 1) / kPageSize;
      EXPECT_TRUE(same_bits(run(freed, heads, {causal, window}), run(kept, heads, {causal, window})));
    }
  }
}

TEST(Attention, OutputMayReplaceTheQueries) {
  for (const int32_t position : {100, 3000}) {
    OnCard on;
    const Heads heads{6, 2, 128};
    const std::vector<SequenceSpec> specs{{1, position, 9}, {2, 0, 3}};
    PagedSequences pages(specs, 2, 128, 5);
    pages.fill();
    const Matrix q = queries_of(specs, heads, 0);
    const TensorView out = on.upload(Matrix(q.rows(), q.columns()));
    const TensorView in_place = on.upload(q);
    AttentionArgs args{.out = out,
                       .q = in_place,
                       .kv = on.upload_bf16(pages.kv()),
                       .batch = on.upload(pages.batch()),
                       .num_heads = 6,
                       .scale = heads.scale()};
    attention(on.card(), args);
    args.out = in_place;
    attention(on.card(), args);
    EXPECT_TRUE(same_bits(on.download(in_place), on.download(out)));
  }
}

// Design D1. Each row in a batch of its own against all at once.
void expect_rows_alone_equal(const std::vector<SequenceSpec>& specs, const Heads& heads, const Mask& mask) {
  const Matrix together = run(specs, heads, mask);
  int64_t row = 0;
  for (const SequenceSpec& spec : specs) {
    for (int32_t r = 0; r < spec.rows; ++r, ++row) {
      if (r % std::max(5, spec.rows / 6) != 0 && r + 1 != spec.rows) continue;
      const Matrix alone = run({{spec.seed, spec.first_position + r, 1}}, heads, mask, nullptr, 3);
      ASSERT_TRUE(same_bits(alone.row(0), together.row(row), heads.columns()))
          << "position " << spec.first_position + r << ", head_dim " << heads.head_dim << ", window " << mask.window;
    }
  }
}

TEST(Attention, DecodeOfOneRowHasTheBitsOfAVerifyOfManyRows) {
  const std::vector<SequenceSpec> specs{{1, 0, 16}, {2, 120, 16}, {3, 1016, 16}, {4, 250, 64}, {5, 17, 1}};
  for (const Mask& mask : {Mask{true, 0}, Mask{true, 1}, Mask{true, 200}}) {
    for (const int32_t head_dim : {64, 128, 256}) expect_rows_alone_equal(specs, {8, 2, head_dim}, mask);
  }
}

TEST(Attention, BitsDoNotDependOnHowTheWorkIsSplit) {
  for (const Mask& mask : {Mask{true, 0}, Mask{true, 2500}}) {
    expect_rows_alone_equal({{1, 5000, 16}}, {32, 8, 128}, mask);   // groups against chunks
    expect_rows_alone_equal({{1, 2300, 256}}, {16, 8, 128}, mask);  // whole sequences against chunks
    expect_rows_alone_equal({{1, 5000, 16}, {2, 300, 3}}, {4, 2, 256}, mask);
  }
}

TEST(Attention, RunsAreEqual) {
  const std::vector<SequenceSpec> specs{{1, 4000, 16}, {2, 77, 5}};
  const Matrix first = run(specs, {32, 8, 128}, {});
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(same_bits(run(specs, {32, 8, 128}, {}), first));
}

TEST(Attention, SaysWhatItDoesNotSupport) {
  EXPECT_TRUE(cu::supports_attention(Card::device(), 32, 8, 128).ok());
  const Status dim = cu::supports_attention(Card::device(), 32, 8, 80);
  ASSERT_FALSE(dim.ok());
  EXPECT_NE(dim.error().message.find("head_dim is 80, expected 64, 128 or 256"), std::string::npos);
  EXPECT_FALSE(cu::supports_attention(Card::device(), 65, 1, 128).ok());
}

}  // namespace
}  // namespace blockdraft
