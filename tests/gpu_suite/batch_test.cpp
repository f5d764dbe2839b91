// Ops over a batch and its pages, attention excepted.
#include <gtest/gtest.h>

#include "gpu_suite/card.h"
#include "ops/grouped_conv.h"
#include "ops/kv_write.h"
#include "support/paged_sequences.h"

namespace blockdraft {
namespace {

using test::Matrix;
using test::OnCard;
using test::PagedSequences;
using test::same_bits;

TEST(KvWrite, RoundsEachRowIntoItsPlace) {
  std::mt19937 generator(1);
  for (const int32_t head_dim : {64, 128}) {
    OnCard on;
    PagedSequences pages({{1, 0, 1}, {2, 15, 3}, {3, 31, 40}, {4, 100, 17, 5}}, 3, head_dim, 9);
    const BatchView batch = pages.batch();
    const int64_t columns = 3 * head_dim;
    const Matrix k = Matrix::random(generator, batch.num_rows, columns, columns + 2);
    const Matrix v = Matrix::random(generator, batch.num_rows, columns, columns + 1);
    const PagedKvView kv = on.upload_bf16(pages.kv());
    kv_write(on.card(), kv, on.upload(batch), on.upload(k), on.upload(v));
    kv_write(on.cpu(), pages.kv(), batch, k.view(), v.view());
    const int64_t size = int64_t{kv.num_pages} * 3 * kPageSize * head_dim;
    for (const auto& [found, expected] : {std::pair(kv.k, pages.kv().k_f32()), std::pair(kv.v, pages.kv().v_f32())}) {
      const std::vector<uint16_t> codes = on.download(static_cast<const uint16_t*>(found), size);
      for (int64_t i = 0; i < size; ++i) {
        const bool was_written = expected[i] == expected[i];
        ASSERT_EQ(codes[static_cast<size_t>(i)], was_written ? bf16_from_float(expected[i]) : 0x7fc0) << i;
      }
    }
  }
}

TEST(GroupedConv, NeverLeavesTheBlock) {
  std::mt19937 generator(2);
  for (const auto& [channels, group, taps] :
       {std::tuple(128, 32, 3), std::tuple(1000, 100, 4), std::tuple(2048, 1, 1)}) {
    OnCard on;
    PagedSequences pages({{1, 0, 1}, {2, 15, 3}, {3, 31, 9}}, 1, 4, 9);
    const int32_t rows = pages.batch().num_rows;
    const Matrix x = Matrix::random(generator, rows, channels, channels + 3);
    const Matrix base = Matrix::random(generator, taps, channels);
    const Matrix dynamic = Matrix::random(generator, rows, taps * (channels / group));
    Matrix expected(rows, channels);
    GroupedConvArgs args{expected.view(), x.view(), base.view(), dynamic.view(), pages.batch(), group};
    grouped_conv(on.cpu(), args);
    const TensorView out = on.upload(Matrix(rows, channels, channels + 1));
    args = {out, on.upload(x), on.upload(base), on.upload(dynamic), on.upload(pages.batch()), group};
    grouped_conv(on.card(), args);
    const Matrix found = on.download(out);
    EXPECT_TRUE(found.gaps_untouched());
    EXPECT_TRUE(same_bits(found, expected));
  }
}

}  // namespace
}  // namespace blockdraft
