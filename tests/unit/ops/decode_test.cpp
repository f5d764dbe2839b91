#include "ops/cpu/decode.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "tensor/codec.h"

namespace blockdraft {
namespace {

template <class Code>
std::vector<float> decode_all(DType dtype) {
  const size_t count = size_t{1} << (8 * sizeof(Code));
  // One byte off, as in a mapped file.
  std::vector<std::byte> bytes(count * sizeof(Code) + 1);
  for (size_t i = 0; i < count; ++i) {
    const auto code = static_cast<Code>(i);
    std::memcpy(bytes.data() + 1 + i * sizeof(Code), &code, sizeof(code));
  }
  std::vector<float> values(count);
  cpu::decode_codes(dtype, bytes.data() + 1, static_cast<int64_t>(count), values.data());
  return values;
}

bool same(float a, float b) { return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b); }

TEST(Decode, EveryF8Code) {
  const std::vector<float> values = decode_all<uint8_t>(DType::f8_e4m3);
  for (size_t code = 0; code < 256; ++code) {
    EXPECT_TRUE(same(values[code], float_from_f8_e4m3(static_cast<uint8_t>(code)))) << code;
  }
  // By the definition of the format, on both sides of the least normal number.
  EXPECT_EQ(values[0x01], 0x1p-9f);
  EXPECT_EQ(values[0x07], 7 * 0x1p-9f);
  EXPECT_EQ(values[0x08], 0x1p-6f);
  EXPECT_EQ(values[0x38], 1.0f);
  EXPECT_EQ(values[0x7e], 448.0f);
  EXPECT_EQ(values[0xfe], -448.0f);
  EXPECT_TRUE(std::signbit(values[0x80]));
}

TEST(Decode, EveryF16Code) {
  const std::vector<float> values = decode_all<uint16_t>(DType::f16);
  for (size_t code = 0; code < 65536; ++code) {
    const float expected = float_from_f16(static_cast<uint16_t>(code));
    // A signalling NaN may come out quiet.
    ASSERT_TRUE(std::isnan(expected) ? std::isnan(values[code]) : same(values[code], expected)) << code;
  }
  EXPECT_EQ(values[0x0001], 0x1p-24f);
  EXPECT_EQ(values[0x03ff], 1023 * 0x1p-24f);
  EXPECT_EQ(values[0x0400], 0x1p-14f);
  EXPECT_EQ(values[0x3c00], 1.0f);
  EXPECT_EQ(values[0x7bff], 65504.0f);
  EXPECT_EQ(values[0xfc00], -std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(values[0x7e00]) && std::isnan(values[0x7c01]));
}

TEST(Decode, EveryBf16Code) {
  const std::vector<float> values = decode_all<uint16_t>(DType::bf16);
  for (size_t code = 0; code < 65536; ++code) {
    ASSERT_EQ(std::bit_cast<uint32_t>(values[code]), static_cast<uint32_t>(code) << 16);
  }
}

TEST(Decode, WritesExactlyCountValues) {
  const std::vector<std::byte> codes(64 * 4, std::byte{0x38});
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16, DType::f8_e4m3}) {
    for (int64_t count = 0; count < 40; ++count) {
      std::vector<float> values(64, -1.0f);
      cpu::decode_codes(dtype, codes.data(), count, values.data());
      for (int64_t i = 0; i < 64; ++i) EXPECT_EQ(values[static_cast<size_t>(i)] > 0.0f, i < count);
    }
  }
}

}  // namespace
}  // namespace blockdraft
