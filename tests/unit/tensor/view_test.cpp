#include <array>
#include <numeric>

#include <gtest/gtest.h>

#include "tensor/paged_kv.h"
#include "tensor/tensor_view.h"
#include "tensor/weight_view.h"

namespace blockdraft {
namespace {

class Views : public ::testing::Test {
 protected:
  Views() { std::iota(values_.begin(), values_.end(), 0.0f); }
  std::array<float, 24> values_{};
};

TEST_F(Views, ContiguousViewsStrideByTheRestOfTheShape) {
  EXPECT_EQ(view_f32(values_.data(), {4, 6}).row_stride, 6);
  EXPECT_EQ(view_f32(values_.data(), {2, 3, 4}).row_stride, 12);
  EXPECT_EQ(view_f32(values_.data(), {24}).row_stride, 1);
  EXPECT_EQ(view_f32(values_.data(), {}).row_stride, 0);
  EXPECT_EQ(view_f32(values_.data(), {0, 6}).row_stride, 0);  // no rows, so no distance between them
  EXPECT_EQ(view_f32(std::as_const(values_).data(), {4, 6}).row(2)[1], 13.0f);
}

TEST_F(Views, RowsAndColumnsShareTheData) {
  const TensorView whole = view_f32(values_.data(), {4, 6});
  const TensorView rows = rows_of(whole, 1, 2);
  EXPECT_EQ(rows.shape, (Shape{2, 6}));
  EXPECT_EQ(rows.row(1)[0], 12.0f);
  const TensorView columns = columns_of(whole, 2, 3);
  EXPECT_EQ(columns.shape, (Shape{4, 3}));
  EXPECT_EQ(columns.row_stride, 6);
  EXPECT_EQ(columns.row(3)[0], 20.0f);
  const TensorView both = columns_of(rows, 5, 1);
  EXPECT_EQ(both.row(1)[0], 17.0f);
  both.row(1)[0] = -1.0f;
  EXPECT_EQ(values_[17], -1.0f);
}

TEST_F(Views, EmptyRangesAreFine) {
  const TensorView whole = view_f32(values_.data(), {4, 6});
  EXPECT_EQ(rows_of(whole, 4, 0).shape, (Shape{0, 6}));
  EXPECT_EQ(columns_of(whole, 6, 0).shape, (Shape{4, 0}));
}

TEST_F(Views, RowsAndColumnsOfOtherTypesLieByElementSize) {
  const TensorView whole = contiguous_view(values_.data(), DType::bf16, {4, 12});
  EXPECT_EQ(whole.row_stride, 12);
  const auto offset = [&](const void* address) {
    return static_cast<const std::byte*>(address) - reinterpret_cast<const std::byte*>(values_.data());
  };
  EXPECT_EQ(offset(whole.row_address(2)), 48);
  EXPECT_EQ(offset(rows_of(whole, 3, 1).data), 72);
  EXPECT_EQ(offset(rows_of(ConstTensorView(whole), 1, 2).row_address(1)), 48);
  const TensorView columns = columns_of(whole, 5, 7);
  EXPECT_EQ(offset(columns.row_address(1)), 34);
  EXPECT_EQ(columns.dtype, DType::bf16);
}

TEST_F(Views, AViewReadsAsAConstView) {
  const TensorView view = columns_of(view_f32(values_.data(), {4, 6}), 1, 2);
  const ConstTensorView read = view;
  EXPECT_EQ(read.row(2)[1], 14.0f);
  EXPECT_EQ(read.dim(1), 2);
  EXPECT_EQ(read.dtype, DType::f32);
}

TEST(ViewsDeathTest, RangesOutsideAreABug) {
  std::array<float, 6> values{};
  const TensorView view = view_f32(values.data(), {2, 3});
  EXPECT_DEATH(rows_of(view, 1, 2), "CHECK");
  EXPECT_DEATH(rows_of(view, -1, 1), "CHECK");
  EXPECT_DEATH(columns_of(view, 3, 1), "CHECK");
}

TEST(WeightView, RowsLieByElementSize) {
  std::array<std::byte, 64> bytes{};
  const WeightView bf16{bytes.data(), DType::bf16, 4, 8, nullptr, nullptr};
  EXPECT_EQ(bf16.row(3) - bytes.data(), 48);
  EXPECT_EQ(bf16.size_bytes(), 64);
}

TEST(WeightView, BytesCountScalesAndBias) {
  const std::array<float, 8> floats{};
  const WeightView fp8{.data = nullptr,
                       .dtype = DType::f8_e4m3,
                       .out_features = 8,
                       .in_features = 100,
                       .row_scales = floats.data(),
                       .bias = floats.data()};
  EXPECT_EQ(fp8.size_bytes(), 8 * 100 + 8 * 4 + 8 * 4);
  const WeightView blocks{
      .data = nullptr, .dtype = DType::f8_e4m3, .out_features = 130, .in_features = 257, .block_scales = floats.data()};
  EXPECT_EQ(blocks.size_bytes(), 130 * 257 + 2 * 3 * 4);
  const std::byte code{};
  const WeightView nvfp4{
      .data = nullptr, .dtype = DType::u8, .out_features = 8, .in_features = 64, .group_scales = &code};
  EXPECT_EQ(nvfp4.size_bytes(), 8 * 32 + 8 * 4 + 4);
  // Larger than 32 bits.
  const WeightView large{nullptr, DType::f32, 1 << 18, 1 << 15};
  EXPECT_EQ(large.size_bytes(), int64_t{1} << 35);
}

TEST(WeightView, RowsOfCodesAndOfTheirScales) {
  const std::array<float, 8> floats{};
  const std::array<std::byte, 300> bytes{};
  const WeightView nvfp4{
      .data = bytes.data(), .dtype = DType::u8, .out_features = 8, .in_features = 64, .group_scales = bytes.data()};
  EXPECT_EQ(nvfp4.row(3), bytes.data() + 96);
  EXPECT_EQ(nvfp4.group_scales_of(3), bytes.data() + 12);
  const WeightView blocks{.data = bytes.data(),
                          .dtype = DType::f8_e4m3,
                          .out_features = 130,
                          .in_features = 2,
                          .block_scales = floats.data()};
  EXPECT_EQ(blocks.row(3), bytes.data() + 6);
  EXPECT_EQ(blocks.block_scales_of(127), floats.data());
  EXPECT_EQ(blocks.block_scales_of(128), floats.data() + 1);
}

TEST(PagedKvView, KeysOfAHeadAreContiguousWithinAPage) {
  PagedKvView kv;
  kv.num_pages = 1 << 20;
  kv.num_kv_heads = 8;
  kv.head_dim = 128;
  EXPECT_EQ(kv.offset(0, 0, 1) - kv.offset(0, 0, 0), 128);
  EXPECT_EQ(kv.offset(0, 1, 0) - kv.offset(0, 0, 0), kPageSize * 128);
  EXPECT_EQ(kv.offset(1, 0, 0), int64_t{8} * kPageSize * 128);
  EXPECT_EQ(kv.offset((1 << 20) - 1, 7, 15), (int64_t{1} << 20) * 8 * kPageSize * 128 - 128);
}

}  // namespace
}  // namespace blockdraft
