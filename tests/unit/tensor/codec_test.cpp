// Every code of every small format against a value computed by definition in double.
#include "tensor/codec.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <random>

#include <gtest/gtest.h>

namespace blockdraft {
namespace {

// sign * 2^(exponent - bias) * (1 + mantissa / 2^bits), subnormals without the 1: IEEE 754 in words.
double by_definition(uint32_t code, int exponent_bits, int mantissa_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const auto mantissa = static_cast<int>(code & ((1u << mantissa_bits) - 1));
  const auto exponent = static_cast<int>((code >> mantissa_bits) & ((1u << exponent_bits) - 1));
  const double sign = (code >> (exponent_bits + mantissa_bits)) != 0 ? -1.0 : 1.0;
  const double fraction = std::ldexp(mantissa, -mantissa_bits);
  return sign * (exponent == 0 ? std::ldexp(fraction, 1 - bias) : std::ldexp(1.0 + fraction, exponent - bias));
}

void expect_same_bits(float value, double expected, uint32_t code) {
  EXPECT_EQ(std::bit_cast<uint32_t>(value), std::bit_cast<uint32_t>(static_cast<float>(expected))) << "code " << code;
}

TEST(Codec, F8E4m3EveryCode) {
  for (uint32_t code = 0; code < 256; ++code) {
    if ((code & 0x7fu) == 0x7fu) continue;  // NaN, see below
    expect_same_bits(float_from_f8_e4m3(static_cast<uint8_t>(code)), by_definition(code, 4, 3), code);
  }
  EXPECT_EQ(float_from_f8_e4m3(0x7e), 448.0f);
  EXPECT_EQ(float_from_f8_e4m3(0x01), 0x1p-9f);
  // As the header says: loaders refuse the NaN codes, and until then they come out as the next value in line.
  EXPECT_EQ(float_from_f8_e4m3(0x7f), 480.0f);
  EXPECT_EQ(float_from_f8_e4m3(0xff), -480.0f);
}

TEST(Codec, F16EveryCode) {
  for (uint32_t code = 0; code < 65536; ++code) {
    const float value = float_from_f16(static_cast<uint16_t>(code));
    if ((code & 0x7c00u) != 0x7c00u) {
      expect_same_bits(value, by_definition(code, 5, 10), code);
    } else if ((code & 0x3ffu) != 0) {
      EXPECT_TRUE(std::isnan(value)) << code;
    } else {
      EXPECT_EQ(value,
                code == 0x7c00u ? std::numeric_limits<float>::infinity() : -std::numeric_limits<float>::infinity());
    }
  }
}

TEST(Codec, F16EveryFiniteCodeSurvivesTheWayThereAndBack) {
  for (uint32_t code = 0; code < 0x10000u; ++code) {
    if ((code & 0x7c00u) == 0x7c00u) continue;
    EXPECT_EQ(f16_from_float(float_from_f16(static_cast<uint16_t>(code))), code);
  }
}

TEST(Codec, F16RoundsToNearestEven) {
  for (uint32_t code = 0; code < 0x7bffu; ++code) {
    const float below = float_from_f16(static_cast<uint16_t>(code));
    const float above = float_from_f16(static_cast<uint16_t>(code + 1));
    const float middle = below + (above - below) / 2;  // exact
    EXPECT_EQ(f16_from_float(middle), code + code % 2);
    EXPECT_EQ(f16_from_float(std::nextafter(middle, 0.0f)), code);
    EXPECT_EQ(f16_from_float(-std::nextafter(middle, above)), (code + 1) | 0x8000u);
  }
  EXPECT_EQ(f16_from_float(1e30f), 0x7bffu);
  EXPECT_EQ(f16_from_float(-65519.0f), 0xfbffu);
}

TEST(Codec, Bf16EveryCodeSurvivesTheWayThereAndBack) {
  for (uint32_t code = 0; code < 65536; ++code) {
    const float value = float_from_bf16(static_cast<uint16_t>(code));
    const uint16_t back = bf16_from_float(value);
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(float_from_bf16(back))) << code;
    } else {
      EXPECT_EQ(back, code);
      if ((code & 0x7f80u) != 0x7f80u) expect_same_bits(value, by_definition(code, 8, 7), code);
    }
  }
}

// The nearest of the two neighbours, by distance in double; on a tie the one with an even code.
uint16_t nearest_bf16(float value) {
  const auto below = static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16);  // towards zero
  const auto above = static_cast<uint16_t>(below + 1);
  const double to_below = std::abs(static_cast<double>(value) - by_definition(below, 8, 7));
  const double to_above = std::abs(by_definition(above, 8, 7) - static_cast<double>(value));
  if (to_below != to_above) return to_below < to_above ? below : above;
  return (below & 1u) == 0 ? below : above;
}

TEST(Codec, Bf16RoundsToNearestEven) {
  std::mt19937 random(7);
  for (int i = 0; i < 200'000; ++i) {
    const auto bits = static_cast<uint32_t>(random());
    for (const uint32_t candidate :
         {bits, (bits & 0xffff0000u) | 0x8000u, (bits & 0xffff0000u) | 0x7fffu, (bits & 0xffff0000u) | 0x8001u}) {
      if ((candidate & 0x7f800000u) == 0x7f800000u) continue;
      const auto value = std::bit_cast<float>(candidate);
      EXPECT_EQ(bf16_from_float(value), nearest_bf16(value)) << candidate;
    }
  }
}

TEST(Codec, Bf16AtTheEdges) {
  EXPECT_EQ(bf16_from_float(0.0f), 0x0000);
  EXPECT_EQ(bf16_from_float(-0.0f), 0x8000);
  EXPECT_EQ(bf16_from_float(std::numeric_limits<float>::infinity()), 0x7f80);
  EXPECT_EQ(bf16_from_float(-std::numeric_limits<float>::infinity()), 0xff80);
  EXPECT_EQ(bf16_from_float(std::numeric_limits<float>::max()), 0x7f80);  // nearer to 2^128 than to the largest value
  EXPECT_EQ(bf16_from_float(std::numeric_limits<float>::denorm_min()), 0x0000);
  // A NaN whose payload lies in the lower half only must not become an infinity.
  for (const uint32_t bits : {0x7f800001u, 0xff800001u, 0x7fffffffu, 0xffffffffu, 0x7fc00000u}) {
    EXPECT_TRUE(std::isnan(float_from_bf16(bf16_from_float(std::bit_cast<float>(bits))))) << bits;
  }
}

TEST(Codec, E2m1EveryCode) {
  for (uint32_t code = 0; code < 16; ++code) {
    expect_same_bits(float_from_e2m1(static_cast<uint8_t>(code)), by_definition(code, 2, 1), code);
  }
  EXPECT_EQ(float_from_e2m1(7), 6.0f);
}

// The nearest of all codes up to `largest`, by distance in double; on a tie the even one.
uint32_t nearest_code(float value, int exponent_bits, int mantissa_bits, uint32_t largest) {
  // Far beyond the largest code, the distances to all of them round to one number.
  const double magnitude = std::min(std::abs(static_cast<double>(value)), 1e6);
  uint32_t best = 0;
  for (uint32_t code = 1; code <= largest; ++code) {
    const double distance = std::abs(by_definition(code, exponent_bits, mantissa_bits) - magnitude);
    const double least = std::abs(by_definition(best, exponent_bits, mantissa_bits) - magnitude);
    if (distance < least || (distance == least && code % 2 == 0)) best = code;
  }
  return best | (std::signbit(value) ? 1u << (exponent_bits + mantissa_bits) : 0u);
}

// Each midpoint of two neighbours, the floats on both sides of it, and random ones of every size that matters.
template <class Check>
void for_values_to_round(int exponent_bits, int mantissa_bits, uint32_t largest, const Check& check) {
  for (uint32_t code = 0; code <= largest; ++code) {
    const double value = by_definition(code, exponent_bits, mantissa_bits);
    const double above = by_definition(code + 1, exponent_bits, mantissa_bits);
    const auto middle = static_cast<float>((value + above) / 2);
    for (const float sign : {1.0f, -1.0f}) {
      check(sign * static_cast<float>(value));
      check(sign * middle);
      check(sign * std::nextafter(middle, 0.0f));
      check(sign * std::nextafter(middle, 1e9f));
    }
  }
  std::mt19937 random(11);
  std::uniform_real_distribution<float> exponent(-20.0f, 12.0f);
  for (int i = 0; i < 20'000; ++i) check((random() % 2 == 0 ? 1.0f : -1.0f) * std::exp2(exponent(random)));
  for (const float value : {1e30f, -1e30f, std::numeric_limits<float>::infinity(), 1e-40f, -1e-40f}) check(value);
}

TEST(Codec, F8E4m3RoundsToNearestEvenAndStopsAt448) {
  for_values_to_round(4, 3, 0x7e, [](float value) {
    EXPECT_EQ(f8_e4m3_from_float(value), nearest_code(value, 4, 3, 0x7e)) << std::hexfloat << value;
  });
}

TEST(Codec, E2m1RoundsToNearestEvenAndStopsAt6) {
  for_values_to_round(2, 1, 7, [](float value) {
    EXPECT_EQ(e2m1_from_float(value), nearest_code(value, 2, 1, 7)) << std::hexfloat << value;
  });
}

TEST(Codec, LoadsFromAnyAddress) {
  std::array<std::byte, 16> bytes{};
  for (size_t offset = 0; offset < 8; ++offset) {
    const float value = 1.5f + static_cast<float>(offset);
    std::memcpy(bytes.data() + offset, &value, sizeof(value));
    EXPECT_EQ(load_unaligned<float>(bytes.data() + offset), value);
  }
}

}  // namespace
}  // namespace blockdraft
