// Weights on their way to the card: bit for bit, what is shared once, and what happens if they do not fit.

#include "nn/device_weights.h"

#include <algorithm>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "gpu_suite/card.h"
#include "support/stored_weight.h"

namespace blockdraft {
namespace {

using test::Card;
using test::Format;
using test::OnCard;
using test::StoredWeight;

class Moved : public testing::Test {
 protected:
  DeviceWeights create(ThreadPool* threads = nullptr) {
    return DeviceWeights::create(Card::device(), threads, "weights of a test").value();
  }
  // Whether `count` elements at `place` on the card are those at `values`. Null is null.
  template <class T>
  void expect_there(const T* place, const T* values, int64_t count, const std::string& what) {
    ASSERT_EQ(place == nullptr, values == nullptr) << what;
    if (values == nullptr) return;
    ASSERT_NE(place, values) << what;
    const std::vector<T> found = on_.download(place, count);
    EXPECT_EQ(std::memcmp(found.data(), values, found.size() * sizeof(T)), 0) << what;
  }
  void expect_there(const WeightView& moved, const WeightView& weight, const std::string& what) {
    const int64_t n = weight.out_features;
    const int64_t k = weight.in_features;
    const int64_t blocks = (n + kScaleBlock - 1) / kScaleBlock * weight.scale_blocks();
    expect_there(moved.data, weight.data, weight.dtype == DType::i8 ? int8_bytes(n, k) : weight.row_bytes() * n, what);
    expect_there(moved.row_scales, weight.row_scales, n, what + ", scales of rows");
    expect_there(moved.block_scales, weight.block_scales, blocks, what + ", scales of blocks");
    expect_there(moved.group_scales, weight.group_scales, n * (k / kScaleGroup), what + ", scales of groups");
    expect_there(moved.bias, weight.bias, n, what + ", bias");
  }

  OnCard on_{1 << 20};
};

TEST_F(Moved, EveryFormatComesBack) {
  std::mt19937 generator(1);
  ThreadPool threads(2);
  DeviceWeights weights = create(&threads);
  std::vector<StoredWeight> stored;
  std::vector<WeightView> moved;
  // The former share a block of memory with others, most of the latter have their own.
  for (const auto& [rows, columns] : {std::pair(130, 200), std::pair(1100, 4000)}) {
    for (const Format format : test::kFormats) {
      stored.emplace_back(generator, format, rows, test::columns_for(format, columns), true);
    }
  }
  for (const StoredWeight& weight : stored) {
    moved.push_back(weight.view());
    ASSERT_TRUE(weights.move(moved.back()).ok());
  }
  ASSERT_TRUE(weights.finish().ok());
  for (size_t i = 0; i < stored.size(); ++i) {
    expect_there(moved[i], stored[i].view(), name_of(test::kFormats[i % test::kFormats.size()]));
    EXPECT_EQ(moved[i].global_scale, stored[i].view().global_scale);
  }
}

// So that each piece of the ring is filled a second time, with threads and without; the last piece is not full.
TEST_F(Moved, WhatIsLargerThanTheRingComesBack) {
  constexpr int64_t kRows = 5003;
  constexpr int64_t kColumns = 7001;
  std::vector<uint32_t> codes(static_cast<size_t>(kRows * kColumns));
  std::mt19937 generator(2);
  std::ranges::generate(codes, [&] { return static_cast<uint32_t>(generator()); });
  const WeightView weight{.data = reinterpret_cast<const std::byte*>(codes.data()),
                          .dtype = DType::f32,
                          .out_features = kRows,
                          .in_features = kColumns};
  ThreadPool pool(2);
  for (ThreadPool* threads : {static_cast<ThreadPool*>(nullptr), &pool}) {
    DeviceWeights weights = create(threads);
    WeightView moved = weight;
    ASSERT_TRUE(weights.move(moved).ok());
    ASSERT_TRUE(weights.finish().ok());
    expect_there(moved, weight, threads == nullptr ? "alone" : "with threads");
    EXPECT_GE(weights.size_bytes(), static_cast<size_t>(weight.size_bytes()));
  }
}

TEST_F(Moved, VectorsAndIdsComeBack) {
  std::vector<float> norm(300);
  std::vector<int32_t> ids(1000);
  for (size_t i = 0; i < norm.size(); ++i) norm[i] = static_cast<float>(i) * 0.25f;
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int32_t>(7 * i);
  DeviceWeights weights = create();
  ConstTensorView moved = view_f32(std::as_const(norm).data(), Shape{300});
  ASSERT_TRUE(weights.move(moved).ok());
  const auto copied = weights.copy(std::span<const int32_t>(ids));
  ASSERT_TRUE(copied.ok());
  ASSERT_TRUE(weights.finish().ok());
  expect_there(moved.f32(), std::as_const(norm).data(), 300, "norm");
  expect_there(*copied, std::as_const(ids).data(), 1000, "ids");
}

TEST_F(Moved, WhatIsSharedIsCopiedOnce) {
  std::mt19937 generator(3);
  const StoredWeight table(generator, Format::bf16, 1100, 4000);  // no small one, whose block has room for two
  DeviceWeights weights = create();
  WeightView embedding = table.view();
  ASSERT_TRUE(weights.move(embedding).ok());
  const size_t size_bytes = weights.size_bytes();
  WeightView head = table.view();
  ASSERT_TRUE(weights.move(head).ok());
  EXPECT_EQ(head.data, embedding.data);
  EXPECT_EQ(weights.size_bytes(), size_bytes);
  ASSERT_TRUE(weights.finish().ok());
}

TEST_F(Moved, AViewWithoutDataStays) {
  DeviceWeights weights = create();
  ConstTensorView norm;
  WeightView weight;
  ASSERT_TRUE(weights.move(norm).ok());
  ASSERT_TRUE(weights.move(weight).ok());
  ASSERT_TRUE(weights.finish().ok());
  EXPECT_EQ(norm.data, nullptr);
  EXPECT_TRUE(weight.data == nullptr && weight.row_scales == nullptr && weight.block_scales == nullptr &&
              weight.group_scales == nullptr && weight.bias == nullptr);
  EXPECT_EQ(weights.size_bytes(), 0u);
}

// Nothing of it is read, so there need not be so much.
TEST_F(Moved, WhatDoesNotFitIsNamedAndTheCardGoesOn) {
  std::mt19937 generator(4);
  const StoredWeight small(generator, Format::bf16, 20, 64);
  WeightView huge = small.view();
  huge.out_features = int64_t{1} << 30;
  huge.in_features = int64_t{1} << 20;
  DeviceWeights weights = create();
  for (int attempt = 0; attempt < 2; ++attempt) {
    WeightView moved = huge;
    const Status status = weights.move(moved);
    ASSERT_FALSE(status.ok()) << attempt;
    EXPECT_EQ(status.error().code, Code::out_of_memory);
    for (const char* part : {"weights of a test", "2251799813685248 bytes", "free are"}) {
      EXPECT_NE(status.error().message.find(part), std::string::npos) << status.error().message;
    }
  }
  WeightView moved = small.view();
  ASSERT_TRUE(weights.move(moved).ok());
  ASSERT_TRUE(weights.finish().ok());
  expect_there(moved, small.view(), "behind the error");
}

}  // namespace
}  // namespace blockdraft
