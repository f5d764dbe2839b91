#include "nn/quantize_int8.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "ops/check_weight.h"
#include "ops/cpu/decode.h"
#include "tensor/codec.h"
#include "tensor/int8_pack.h"

namespace blockdraft {
namespace {

std::vector<float> random_row(std::mt19937& generator, int64_t columns, float size) {
  std::normal_distribution<float> normal;
  std::vector<float> row(static_cast<size_t>(columns));
  for (float& value : row) value = normal(generator) * size;
  return row;
}

TEST(QuantizeInt8, EachCodeIsTheNearestForTheStoredScale) {
  std::mt19937 generator(1);
  for (const float size : {1e-6f, 1e-3f, 1.0f, 1e3f, 1e6f}) {
    const std::vector<float> row = random_row(generator, 320, size);
    std::vector<int8_t> codes(320);
    std::vector<uint16_t> scales(10);
    quantize_row_int8(row, codes, scales);
    for (size_t g = 0; g < scales.size(); ++g) {
      const std::span<const float> group = std::span(row).subspan(32 * g, 32);
      const float scale = float_from_f16(scales[g]);
      EXPECT_NEAR(scale, largest_magnitude(group) / 127, largest_magnitude(group) / 127 * 0x1p-11f + 0x1p-25f);
      for (size_t k = 0; k < 32; ++k) {
        const double nearest = scale == 0 ? 0 : std::nearbyint(static_cast<double>(group[k] / scale));
        EXPECT_EQ(codes[32 * g + k], std::clamp(nearest, -127.0, 127.0)) << size;
      }
    }
  }
}

TEST(QuantizeInt8, ZerosTiesAndTheEndsOfTheRange) {
  std::vector<float> row(64, 0.0f);
  row[32] = 127;
  row[33] = 0.5f;
  row[34] = 1.5f;
  row[35] = -2.5f;
  row[36] = -127;
  std::vector<int8_t> codes(64, 5);
  std::vector<uint16_t> scales(2, 5);
  quantize_row_int8(row, codes, scales);
  EXPECT_TRUE(std::all_of(codes.begin(), codes.begin() + 32, [](int8_t code) { return code == 0; }));
  EXPECT_EQ(scales[0], 0);
  EXPECT_EQ(float_from_f16(scales[1]), 1.0f);
  EXPECT_EQ((std::vector<int8_t>(codes.begin() + 32, codes.begin() + 38)),
            (std::vector<int8_t>{127, 0, 2, -2, -127, 0}));
  row[40] = std::numeric_limits<float>::max();  // beyond what F16 scales: codes and scale end, and stay finite
  quantize_row_int8(row, codes, scales);
  EXPECT_EQ(float_from_f16(scales[1]), 65504.0f);
  EXPECT_EQ(codes[40], 127);
}

// A matrix whose bytes say where they are.
struct Stored {
  std::vector<int8_t> codes;
  std::vector<uint16_t> scales;

  Stored(std::mt19937& generator, int64_t out_features, int64_t in_features)
      : codes(static_cast<size_t>(out_features * in_features)), scales(codes.size() / 32) {
    for (int8_t& code : codes) code = static_cast<int8_t>(generator());
    for (uint16_t& scale : scales) scale = static_cast<uint16_t>(generator() % 0x7c00u);
  }
  const std::byte* code_bytes() const { return reinterpret_cast<const std::byte*>(codes.data()); }
  const std::byte* scale_bytes() const { return reinterpret_cast<const std::byte*>(scales.data()); }
};

TEST(QuantizeInt8, PackedToTheBitAndReadBack) {
  std::mt19937 generator(2);
  ThreadPool threads(3);
  for (const int64_t out_features : {1, 15, 16, 17, 100}) {
    for (const int64_t in_features : {32, 96, 128}) {
      const Stored stored(generator, out_features, in_features);
      const auto matrix = pack_int8(stored.code_bytes(), stored.scale_bytes(), out_features, in_features, &threads);
      ASSERT_TRUE(matrix);
      const WeightView& view = matrix->view;
      ASSERT_TRUE(is_valid_weight(view));
      ASSERT_EQ(matrix->size_bytes(), static_cast<size_t>(view.size_bytes()));
      EXPECT_EQ(reinterpret_cast<uintptr_t>(view.data) % 64, 0u);
      std::vector<float> row(static_cast<size_t>(in_features));
      for (int64_t n = 0; n < out_features; ++n) {
        cpu::decode_row(view, n, row.data());
        for (int64_t k = 0; k < in_features; ++k) {
          const int code = stored.codes[static_cast<size_t>(n * in_features + k)];
          const float scale = float_from_f16(stored.scales[static_cast<size_t>((n * in_features + k) / 32)]);
          const std::byte* pack = view.data + n / 16 * int8_pack_bytes(in_features);
          ASSERT_EQ(std::to_integer<int>(pack[k / 4 * 64 + n % 16 * 4 + k % 4]) - 128, code);
          ASSERT_EQ(row[static_cast<size_t>(k)], static_cast<float>(code) * scale);
        }
      }
    }
  }
}

TEST(QuantizeInt8, OfAMatrixIsThatOfItsRowsWhateverTheThreads) {
  std::mt19937 generator(3);
  const std::vector<float> values = random_row(generator, 130 * 64, 0.1f);
  const WeightView weight{reinterpret_cast<const std::byte*>(values.data()), DType::f32, 130, 64};
  std::vector<int8_t> codes(values.size());
  std::vector<uint16_t> scales(values.size() / 32);
  quantize_row_int8(values, codes, scales);  // rows are whole groups
  const auto expected = pack_int8(reinterpret_cast<const std::byte*>(codes.data()),
                                  reinterpret_cast<const std::byte*>(scales.data()), 130, 64);
  for (int num_threads = 1; num_threads <= 4; ++num_threads) {
    ThreadPool threads(num_threads);
    const auto found = quantize_int8(weight, &threads);
    ASSERT_TRUE(expected && found);
    EXPECT_EQ(std::memcmp(found->view.data, expected->view.data, expected->size_bytes()), 0);
  }
}

}  // namespace
}  // namespace blockdraft
