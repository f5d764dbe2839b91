#include "nn/quantize.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "checkpoint/checkpoint.h"
#include "ops/cpu/decode.h"
#include "tensor/codec.h"

namespace blockdraft {
namespace {

const std::string kGolden = BLOCKDRAFT_SOURCE_DIR "/tests/golden/";

Checkpoint golden(const std::string& name) {
  auto checkpoint = Checkpoint::open(kGolden + name);
  if (!checkpoint) throw std::runtime_error(checkpoint.error().message);
  return std::move(checkpoint).value();
}

WeightView view_of(const StoredTensor& tensor) { return {tensor.data, tensor.dtype, tensor.shape[0], tensor.shape[1]}; }

std::vector<float> row_of(const WeightView& weight, int64_t row) {
  std::vector<float> values(static_cast<size_t>(weight.in_features));
  cpu::decode_row(weight, row, values.data());
  return values;
}

// The reference quantized dflash_plain: codes and scales are fixed to the bit.
TEST(Quantize, Fp8OfTheReferenceToTheBit) {
  const Checkpoint plain = golden("dflash_plain");
  const Checkpoint reference = golden("dflash_fp8_row");
  int compared = 0;
  for (const std::string& name : reference.names()) {
    const StoredTensor& expected = *reference.find(name);
    if (expected.dtype != DType::f8_e4m3) continue;
    const StoredTensor& scales = *reference.find(name + "_scale");
    const WeightView weight = view_of(*plain.find(name));
    std::vector<uint8_t> codes(static_cast<size_t>(weight.in_features));
    for (int64_t n = 0; n < weight.out_features; ++n) {
      const std::vector<float> row = row_of(weight, n);
      const float scale = fp8_row_scale(row);
      quantize_row_fp8(row, scale, codes);
      ASSERT_EQ(scale, load_unaligned<float>(scales.data + 4 * n)) << name << ", row " << n;
      ASSERT_EQ(std::memcmp(codes.data(), expected.data + n * weight.in_features, codes.size()), 0) << name << " " << n;
    }
    ++compared;
  }
  EXPECT_EQ(compared, 15);  // fc, and seven in each of two layers
}

TEST(Quantize, Fp8OfZerosAndOfTheLargestWeight) {
  const std::vector<float> zeros(5, 0.0f);
  std::vector<uint8_t> codes(5, 0xaa);
  EXPECT_EQ(fp8_row_scale(zeros), 1.0f);
  quantize_row_fp8(zeros, 1.0f, codes);
  EXPECT_EQ(codes, std::vector<uint8_t>(5, 0));
  std::mt19937 generator(1);
  std::normal_distribution<float> normal;
  for (int i = 0; i < 1000; ++i) {
    std::vector<float> row(5);
    for (float& value : row) value = normal(generator);
    quantize_row_fp8(row, fp8_row_scale(row), codes);
    EXPECT_EQ(*std::ranges::max_element(codes, {}, [](uint8_t code) { return code & 0x7f; }) & 0x7f, 0x7e);
  }
}

struct Packed {
  std::vector<uint8_t> codes, scales;
  float divisor;

  Packed(const std::vector<float>& row, float largest)
      : codes(row.size() / 2), scales(row.size() / 16), divisor(nvfp4_divisor(largest)) {
    quantize_row_nvfp4(row, divisor, codes, scales);
  }
  std::vector<float> values() const {
    const WeightView view{.data = reinterpret_cast<const std::byte*>(codes.data()),
                          .dtype = DType::u8,
                          .out_features = 1,
                          .in_features = static_cast<int64_t>(2 * codes.size()),
                          .group_scales = reinterpret_cast<const std::byte*>(scales.data()),
                          .global_scale = 1.0f / divisor};
    return row_of(view, 0);
  }
};

TEST(Quantize, Nvfp4ErrorIsHalfAStepOfTheGroup) {
  std::mt19937 generator(2);
  std::normal_distribution<float> normal;
  for (const float size : {1.0f, 1e-20f, 1e20f}) {
    std::vector<float> row(512);
    for (size_t k = 0; k < row.size(); ++k) row[k] = size * normal(generator) * std::exp2(static_cast<float>(k / 64));
    const float largest = largest_magnitude(row);
    const std::vector<float> values = Packed(row, largest).values();
    for (size_t g = 0; g < row.size(); g += 16) {
      // The scale is rounded to 3 bits of mantissa, 1/16 either way, and the step of E2M1 between 4 and 6 is 2: half a
      // step is 1/6 of the group's largest weight, and so is the most that a scale too small cuts off it.
      const float group = largest_magnitude({row.data() + g, 16});
      for (size_t k = g; k < g + 16; ++k) EXPECT_NEAR(values[k], row[k], group * (1.0f / 6 + 1.0f / 16)) << k;
    }
  }
}

TEST(Quantize, Nvfp4GivesTheLargestWeightTheLargestCodeAndScale) {
  std::vector<float> row(32, 0.01f);
  row[20] = -0.7f;
  const Packed packed(row, 0.7f);
  EXPECT_EQ(packed.scales[1], 0x7e);             // 448
  EXPECT_EQ(packed.codes[10] & 0x0f, 0x08 | 7);  // -6
  EXPECT_NEAR(packed.values()[20], -0.7f, 1e-6f);
}

// What the format can hold comes back as it was.
TEST(Quantize, Nvfp4OfItsOwnValuesIsExact) {
  std::mt19937 generator(3);
  std::vector<float> row(256);
  for (size_t k = 0; k < row.size(); ++k) {
    const float scale = k / 16 == 3 ? 448.0f : std::exp2(static_cast<float>(k / 16 % 8));
    row[k] = (k % 16 == 5 ? 6.0f : float_from_e2m1(static_cast<uint8_t>(generator() & 15u))) * scale * 0x1p-10f;
  }
  EXPECT_EQ(Packed(row, 2688.0f * 0x1p-10f).values(), row);
}

TEST(Quantize, Nvfp4OfZerosAndOfTinyWeights) {
  EXPECT_EQ(nvfp4_divisor(0.0f), 1.0f);
  EXPECT_EQ(Packed(std::vector<float>(16, 0.0f), 0.0f).values(), std::vector<float>(16, 0.0f));
  EXPECT_TRUE(std::isnormal(1.0f / nvfp4_divisor(1e-44f)));
  EXPECT_TRUE(std::isfinite(nvfp4_divisor(3e38f)) && nvfp4_divisor(3e38f) > 0.0f);
}

// The reference packed dflash_plain by the same definition, but for the last bit of divisors (which moves one scale)
// and for ties, which it rounds towards zero: where scales are equal and codes differ, ours is as near.
TEST(Quantize, Nvfp4IsAsNearAsTheReference) {
  const Checkpoint plain = golden("dflash_plain");
  const Checkpoint reference = golden("dflash_nvfp4_compressed_tensors");
  int64_t tensors = 0, elements = 0, others = 0, other_scales = 0;
  for (const std::string& name : plain.names()) {
    const StoredTensor* packed = reference.find(name + "_packed");
    if (packed == nullptr) continue;
    const WeightView weight = view_of(*plain.find(name));
    WeightView stored{.data = packed->data,
                      .dtype = DType::u8,
                      .out_features = weight.out_features,
                      .in_features = weight.in_features,
                      .group_scales = reference.find(name + "_scale")->data};
    const auto divisor = load_unaligned<float>(reference.find(name + "_global_scale")->data);
    stored.global_scale = 1.0f / divisor;
    float largest = 0.0f;
    for (int64_t n = 0; n < weight.out_features; ++n) largest = std::max(largest, largest_magnitude(row_of(weight, n)));
    EXPECT_FLOAT_EQ(nvfp4_divisor(largest), divisor) << name;
    for (int64_t n = 0; n < weight.out_features; ++n) {
      const std::vector<float> row = row_of(weight, n);
      const Packed packed_row(row, largest);
      const std::vector<float> ours = packed_row.values();
      const std::vector<float> theirs = row_of(stored, n);
      for (size_t k = 0; k < row.size(); ++k, ++elements) {
        const auto scale = std::to_integer<uint8_t>(stored.group_scales_of(n)[k / 16]);
        if (packed_row.scales[k / 16] != scale) ++other_scales;
        if (packed_row.scales[k / 16] != scale || std::abs(ours[k] - theirs[k]) <= 1e-6f * std::abs(theirs[k]))
          continue;
        ++others;
        EXPECT_LE(std::abs(ours[k] - row[k]), std::abs(theirs[k] - row[k]) * 1.0001f) << name << " " << n << ", " << k;
      }
    }
    ++tensors;
  }
  EXPECT_EQ(tensors, 15);
  EXPECT_LE(other_scales, 16);
  EXPECT_LT(others, elements / 100);
}

}  // namespace
}  // namespace blockdraft
