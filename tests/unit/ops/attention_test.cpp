#include "ops/attention.h"

#include <gtest/gtest.h>

#include "support/paged_sequences.h"
#include "support/reference_ops.h"

namespace blockdraft {
namespace {

using test::Matrix;
using test::OpContext;
using test::PagedSequences;
using test::same_bits;
using test::SequenceSpec;

struct Heads {
  int32_t num_heads;
  int32_t num_kv_heads;
  int32_t head_dim;
  int64_t columns() const { return int64_t{num_heads} * head_dim; }
  int64_t kv_columns() const { return int64_t{num_kv_heads} * head_dim; }
};

struct Mask {
  bool causal = true;
  int32_t window = 0;
};

Matrix queries_of(const std::vector<SequenceSpec>& specs, const Heads& heads) {
  int64_t rows = 0;
  for (const SequenceSpec& spec : specs) rows += spec.rows;
  Matrix q(rows, heads.columns(), heads.columns() + 3);
  int64_t row = 0;
  for (const SequenceSpec& spec : specs) {
    const Matrix all = test::dense_queries(spec, heads.columns());
    for (int32_t r = 0; r < spec.rows; ++r)
      std::copy_n(all.row(spec.first_position + r), heads.columns(), q.row(row++));
  }
  return q;
}

Matrix run(Context& context, const std::vector<SequenceSpec>& specs, const Heads& heads, const Mask& mask,
           uint32_t page_order_seed = 1) {
  PagedSequences pages(specs, heads.num_kv_heads, heads.head_dim, page_order_seed);
  pages.fill();
  const Matrix q = queries_of(specs, heads);
  Matrix out(q.rows(), q.columns(), q.columns() + 1);
  attention(context, {.out = out.view(),
                      .q = q.view(),
                      .kv = pages.kv(),
                      .batch = pages.batch(),
                      .num_heads = heads.num_heads,
                      .causal = mask.causal,
                      .window = mask.window,
                      .scale = 1.0f / std::sqrt(static_cast<float>(heads.head_dim))});
  EXPECT_TRUE(out.gaps_untouched());
  return out;
}

void expect_near_reference(const Matrix& out, const std::vector<SequenceSpec>& specs, const Heads& heads,
                           const Mask& mask) {
  const double scale = 1.0 / std::sqrt(static_cast<double>(heads.head_dim));
  int64_t row = 0;
  for (const SequenceSpec& spec : specs) {
    const Matrix q = test::dense_queries(spec, heads.columns());
    const Matrix k = test::dense_keys(spec, heads.kv_columns());
    const Matrix v = test::dense_values(spec, heads.kv_columns());
    for (int32_t p = spec.first_position; p < spec.end(); ++p, ++row) {
      for (int32_t h = 0; h < heads.num_heads; ++h) {
        const int64_t kv = int64_t{h / (heads.num_heads / heads.num_kv_heads)} * heads.head_dim;
        const auto expected =
            test::reference_attention(q.row(p) + h * heads.head_dim, k.row(0) + kv, v.row(0) + kv, heads.kv_columns(),
                                      heads.head_dim, p, spec.end(), mask.causal, mask.window, scale);
        for (int32_t d = 0; d < heads.head_dim; ++d) {
          const auto value = static_cast<double>(out.row(row)[h * heads.head_dim + d]);
          ASSERT_NEAR(value, expected[static_cast<size_t>(d)], 5e-6)
              << "position " << p << ", head " << h << ", dim " << d;
        }
      }
    }
  }
}

const std::vector<Mask> kMasks{{true, 0}, {false, 0}, {true, 1}, {true, 5}, {false, 5}, {true, 200}, {false, 200}};

TEST(Attention, MatchesTheReferenceInEveryHeadLayout) {
  OpContext context(2);
  const std::vector<SequenceSpec> specs{{1, 0, 1}, {2, 120, 17}, {3, 255, 2}, {4, 0, 33}};
  for (const Heads& heads : {Heads{1, 1, 2}, Heads{2, 1, 6}, Heads{4, 2, 34}, Heads{6, 6, 64}, Heads{3, 1, 128},
                             Heads{40, 1, 16}, Heads{2, 1, 80}, Heads{3, 3, 256}, Heads{2, 1, 512}}) {
    for (const Mask& mask : {Mask{true, 0}, Mask{false, 20}}) {
      expect_near_reference(run(context, specs, heads, mask), specs, heads, mask);
    }
  }
}

TEST(Attention, FieldFault4_MatchesTheReferenceUnderEveryMask) {
  OpContext context(2);
  const std::vector<SequenceSpec> specs{{1, 0, 20}, {2, 112, 32}, {3, 127, 1}, {4, 128, 1}, {5, 383, 16}};
  const Heads heads{4, 2, 32};
  for (const Mask& mask : kMasks) expect_near_reference(run(context, specs, heads, mask), specs, heads, mask);
}

TEST(Attention, MatchesTheReferenceAcrossGroupsOfChunks) {
  OpContext context(2);
  const std::vector<SequenceSpec> specs{{1, 4090, 17}, {2, 8191, 2}};
  const Heads heads{2, 1, 16};
  for (const Mask& mask : {Mask{true, 0}, Mask{false, 0}, Mask{true, 300}, Mask{true, 5000}}) {
    expect_near_reference(run(context, specs, heads, mask), specs, heads, mask);
  }
}

TEST(Attention, PagesBelowTheWindowAreNotRead) {
  OpContext context;
  const Heads heads{4, 2, 16};
  for (const int32_t window : {1, 16, 40, 130}) {
    for (const bool causal : {true, false}) {
      // The last page that no row needs: the first row sees positions above first_position - window.
      const std::vector<SequenceSpec> kept{{7, 300, 9}};
      std::vector<SequenceSpec> freed = kept;
      freed[0].freed_pages = (300 - window + 1) / kPageSize;
      const Mask mask{causal, window};
      EXPECT_TRUE(same_bits(run(context, freed, heads, mask), run(context, kept, heads, mask)));
    }
  }
}

TEST(Attention, OutputMayReplaceTheQueries) {
  OpContext context(2);
  const std::vector<SequenceSpec> specs{{1, 100, 9}, {2, 0, 3}};
  const Heads heads{6, 2, 32};
  PagedSequences pages(specs, 2, 32, 5);
  pages.fill();
  Matrix q = queries_of(specs, heads);
  Matrix out(q.rows(), q.columns());
  AttentionArgs args{.out = out.view(), .q = q.view(), .kv = pages.kv(), .batch = pages.batch(), .num_heads = 6};
  attention(context, args);
  args.out = q.view();
  attention(context, args);
  EXPECT_TRUE(same_bits(q, out));
}

TEST(Attention, LargeScoresDoNotOverflow) {
  OpContext context;
  PagedSequences pages({{1, 399, 1}}, 1, 8, 1);
  pages.fill();
  const BatchView batch = pages.batch();
  // Scores of +-1e5: the softmax is one at the largest and zero elsewhere.
  for (int32_t p = 0; p < 400; ++p)
    std::fill_n(pages.kv().k_f32() + pages.offset(0, p, 0), 8, p == 250 ? 100.0f : -100.0f);
  Matrix q(1, 8);
  std::fill_n(q.row(0), 8, 125.0f);
  Matrix out(1, 8);
  attention(context, {.out = out.view(), .q = q.view(), .kv = pages.kv(), .batch = batch, .num_heads = 1});
  EXPECT_TRUE(same_bits(out.row(0), pages.kv().v_f32() + pages.offset(0, 250, 0), 8));
}

// Design D1. The rows of `specs` one at a time, each in a batch of its own, against all at once.
void expect_rows_alone_equal(const std::vector<SequenceSpec>& specs, const Heads& heads, const Mask& mask) {
  OpContext one(1);
  OpContext several(3);
  const Matrix together = run(several, specs, heads, mask);
  int64_t row = 0;
  for (const SequenceSpec& spec : specs) {
    for (int32_t r = 0; r < spec.rows; ++r, ++row) {
      const Matrix alone = run(one, {{spec.seed, spec.first_position + r, 1}}, heads, mask);
      ASSERT_TRUE(same_bits(alone.row(0), together.row(row), heads.columns())) << spec.first_position + r;
    }
  }
}

TEST(Attention, DecodeOfOneRowHasTheBitsOfAVerifyOfManyRows) {
  const std::vector<SequenceSpec> specs{{1, 0, 16}, {2, 120, 16}, {3, 128, 3}, {4, 250, 64}, {5, 17, 1}};
  for (const Mask& mask : {Mask{true, 0}, Mask{true, 1}, Mask{true, 30}, Mask{true, 200}}) {
    expect_rows_alone_equal(specs, {4, 2, 34}, mask);
  }
  expect_rows_alone_equal(specs, {40, 1, 16}, {});
}

TEST(Attention, DecodeOfOneRowHasTheBitsOfAVerifyAcrossTheGroupBoundary) {
  const std::vector<SequenceSpec> specs{{1, 4088, 16}, {2, 8190, 4}};
  for (const Mask& mask : {Mask{true, 0}, Mask{true, 500}, Mask{true, 4097}}) {
    expect_rows_alone_equal(specs, {2, 1, 16}, mask);
  }
}

TEST(Attention, BitsDoNotDependOnCompanionsPageOrderOrThreads) {
  const Heads heads{4, 2, 34};
  const SequenceSpec probe{9, 250, 16};
  OpContext one(1);
  for (const Mask& mask : kMasks) {
    const Matrix expected = run(one, {probe}, heads, mask, 1);
    for (int num_threads = 1; num_threads <= 4; ++num_threads) {
      OpContext context(num_threads);
      const std::vector<std::vector<SequenceSpec>> batches{
          {probe}, {probe, {2, 0, 5}}, {{2, 500, 1}, probe}, {{3, 7, 7}, {4, 0, 60}, probe, {5, 129, 1}, {6, 1, 1}}};
      for (uint32_t page_order = 1; page_order <= 3; ++page_order) {
        for (const auto& specs : batches) {
          const Matrix out = run(context, specs, heads, mask, page_order);
          int64_t first = 0;
          for (const SequenceSpec& spec : specs) {
            if (spec.seed == probe.seed) break;
            first += spec.rows;
          }
          for (int64_t r = 0; r < probe.rows; ++r) {
            ASSERT_TRUE(same_bits(out.row(first + r), expected.row(r), heads.columns()));
          }
        }
      }
    }
  }
}

// Few rows far into a text: the groups of chunks are spread over the threads.
TEST(Attention, BitsDoNotDependOnHowGroupsAreSpread) {
  const Heads heads{2, 1, 16};
  const SequenceSpec probe{9, 16500, 3};
  OpContext one(1);
  for (const Mask& mask : {Mask{true, 0}, Mask{false, 0}, Mask{true, 9000}}) {
    const Matrix expected = run(one, {probe}, heads, mask);
    for (const int num_threads : {2, 3, 4}) {
      OpContext context(num_threads);
      EXPECT_TRUE(same_bits(run(context, {probe}, heads, mask), expected));
      const Matrix both = run(context, {{2, 5000, 1}, probe}, heads, mask);
      for (int64_t r = 0; r < probe.rows; ++r) {
        EXPECT_TRUE(same_bits(both.row(1 + r), expected.row(r), heads.columns())) << num_threads << " threads";
      }
    }
  }
}

// What is not a number in a row, or in a key or value, reaches the rows that see it and no others.
TEST(Attention, NotANumberReachesThoseWhoSeeIt) {
  const Heads heads{4, 2, 34};
  const std::vector<SequenceSpec> specs{{1, 120, 16}};
  OpContext context(2);
  PagedSequences pages(specs, 2, 34, 5);
  const Matrix q = queries_of(specs, heads);
  const auto attend = [&](const Matrix& queries) {
    Matrix out(16, heads.columns());
    attention(context,
              {.out = out.view(), .q = queries.view(), .kv = pages.kv(), .batch = pages.batch(), .num_heads = 4});
    return out;
  };
  pages.fill();
  const Matrix expected = attend(q);
  for (const int32_t bad : {120, 127, 128, 131, 135}) {
    for (float* memory : {pages.kv().k_f32(), pages.kv().v_f32()}) {
      for (const float value : {std::nanf(""), HUGE_VALF}) {
        for (int32_t head = 0; head < 2; ++head) memory[pages.offset(0, bad, head)] = value;
        const Matrix out = attend(q);
        for (int32_t r = 0; r < 16; ++r) {
          const bool same = same_bits(out.row(r), expected.row(r), heads.columns());
          EXPECT_EQ(same, 120 + r < bad) << "row " << r << ", position " << bad;
        }
        pages.fill();
      }
    }
    Matrix changed = q;
    changed.row(bad - 120)[heads.head_dim] = std::nanf("");  // of the second head
    const Matrix out = attend(changed);
    for (int32_t r = 0; r < 16; ++r) {
      EXPECT_EQ(std::isnan(out.row(r)[heads.head_dim]), r == bad - 120);
      const int64_t untouched = r == bad - 120 ? heads.head_dim : heads.columns();
      EXPECT_TRUE(same_bits(out.row(r), expected.row(r), untouched));
    }
  }
}

// The bits of a row do not depend on what the other rows of its sequence hold, as long as it cannot see them.
TEST(Attention, CausalBitsDoNotDependOnLaterRows) {
  OpContext context;
  const Heads heads{4, 2, 16};
  const Matrix shorter = run(context, {{9, 125, 3}}, heads, {});
  const Matrix longer = run(context, {{9, 125, 16}}, heads, {});
  for (int64_t r = 0; r < 3; ++r) EXPECT_TRUE(same_bits(shorter.row(r), longer.row(r), heads.columns()));
}

TEST(Attention, TakesNoMoreScratchThanItSays) {
  for (int num_threads = 1; num_threads <= 3; ++num_threads) {
    for (const Heads& heads : {Heads{1, 1, 64}, Heads{8, 2, 64}, Heads{40, 1, 16}, Heads{2, 2, 512}}) {
      for (const int32_t rows : {1, 16, 100}) {
        for (const int32_t position : {3, 4096}) {
          if (position > 3 && (rows > 16 || heads.columns() > 512)) continue;  // slow, and nothing new
          OpContext context(num_threads);
          run(context, {{1, position, rows}}, heads, {});
          EXPECT_LE(context->arena->peak_bytes(),
                    attention_scratch_bytes(num_threads, rows, heads.num_heads, heads.head_dim));
          EXPECT_EQ(context->arena->used_bytes(), 0u);
        }
      }
    }
  }
}

TEST(Attention, SequencesWithoutRows) {
  OpContext context(2);
  const std::vector<SequenceSpec> specs{{1, 5, 0}, {2, 30, 2}, {3, 9, 0}, {4, 0, 0}, {5, 3, 1}, {6, 2, 0}};
  const Heads heads{2, 1, 8};
  expect_near_reference(run(context, specs, heads, {}), specs, heads, {});
  run(context, {}, heads, {});
}

}  // namespace
}  // namespace blockdraft
