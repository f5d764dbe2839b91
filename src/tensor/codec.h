// Stored number formats to float32, exactly, and float32 to them, to nearest even. Loads go through memcpy: tensors in
// files need not be aligned.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/host_device.h"
#include "base/unwatched.h"

namespace blockdraft {

template <class T>
BLOCKDRAFT_UNWATCHED inline T load_unaligned(const std::byte* address) {
  T value;
  std::memcpy(&value, address, sizeof(T));
  return value;
}

// std::bit_cast, but unwatched: ThreadSanitizer keeps calls of what it watches.
template <class To, class From>
BLOCKDRAFT_UNWATCHED BLOCKDRAFT_HOST_DEVICE constexpr To bits_as(From value) {
  static_assert(sizeof(To) == sizeof(From));
  return __builtin_bit_cast(To, value);
}

BLOCKDRAFT_UNWATCHED BLOCKDRAFT_HOST_DEVICE inline float float_from_bf16(uint16_t bits) {
  return bits_as<float>(static_cast<uint32_t>(bits) << 16);
}

// Round to nearest even. NaN stays NaN.
BLOCKDRAFT_UNWATCHED BLOCKDRAFT_HOST_DEVICE inline uint16_t bf16_from_float(float value) {
  const auto bits = bits_as<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((bits >> 16) | 0x40u);
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

// Shifting the exponent and mantissa into place leaves a value 2^112 too small, subnormals included; the product is
// exact. Infinity and NaN (exponent 31) need the larger exponent put back.
BLOCKDRAFT_UNWATCHED BLOCKDRAFT_HOST_DEVICE inline float float_from_f16(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
  const uint32_t magnitude = static_cast<uint32_t>(bits & 0x7fffu) << 13;
  if ((bits & 0x7c00u) == 0x7c00u) return bits_as<float>(sign | 0x7f800000u | magnitude);
  return bits_as<float>(sign | bits_as<uint32_t>(bits_as<float>(magnitude) * 0x1p112f));
}

// To nearest even; beyond the largest, 65504, to that. Precondition: not NaN. Below the least normal number, 2^-14,
// codes are multiples of 2^-24, which is the spacing of floats from 0.5 on: the sum there rounds as wanted.
BLOCKDRAFT_UNWATCHED inline uint16_t f16_from_float(float value) {
  const auto bits = bits_as<uint32_t>(value);
  const uint32_t magnitude = bits & 0x7fffffffu;
  uint32_t code = ((magnitude + 0xfffu + ((magnitude >> 13) & 1u)) >> 13) - (112u << 10);
  if (magnitude < bits_as<uint32_t>(0x1p-14f)) {
    code = bits_as<uint32_t>(bits_as<float>(magnitude) + 0.5f) - bits_as<uint32_t>(0.5f);
  }
  return static_cast<uint16_t>((bits >> 16 & 0x8000u) | (code < 0x7bffu ? code : 0x7bffu));
}

// E4M3 "fn": no infinity, largest 448. The NaN codes 0x7F and 0xFF come out as 480: loaders refuse them.
BLOCKDRAFT_UNWATCHED BLOCKDRAFT_HOST_DEVICE constexpr float float_from_f8_e4m3(uint8_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x80u) << 24;
  const uint32_t magnitude = static_cast<uint32_t>(bits & 0x7fu) << 20;
  return bits_as<float>(sign | bits_as<uint32_t>(bits_as<float>(magnitude) * 0x1p120f));
}

// To nearest even; beyond 448 to 448. Precondition: not NaN. Below the least normal number, 2^-6, codes are multiples
// of 2^-9, which is the spacing of floats from 2^14 on: the sum there rounds as wanted.
BLOCKDRAFT_UNWATCHED inline uint8_t f8_e4m3_from_float(float value) {
  const auto bits = bits_as<uint32_t>(value);
  const uint32_t magnitude = bits & 0x7fffffffu;
  uint32_t code = ((magnitude + 0x7ffffu + ((magnitude >> 20) & 1u)) >> 20) - (120u << 3);
  if (magnitude < bits_as<uint32_t>(0x1p-6f)) {
    code = bits_as<uint32_t>(bits_as<float>(magnitude) + 0x1p14f) - bits_as<uint32_t>(0x1p14f);
  }
  return static_cast<uint8_t>((bits >> 24 & 0x80u) | (code < 0x7eu ? code : 0x7eu));
}

// E2M1: 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives (bit 3). Only the low four bits count.
BLOCKDRAFT_UNWATCHED BLOCKDRAFT_HOST_DEVICE constexpr float float_from_e2m1(uint8_t code) {
  constexpr float kMagnitudes[] = {0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f};
  return (code & 8) != 0 ? -kMagnitudes[code & 7] : kMagnitudes[code & 7];
}

// To nearest even (of two equally near ones the even code); beyond 6 to 6. Precondition: not NaN.
BLOCKDRAFT_UNWATCHED inline uint8_t e2m1_from_float(float value) {
  const auto bits = bits_as<uint32_t>(value);
  const uint32_t magnitude = bits & 0x7fffffffu;
  uint32_t code = ((magnitude + 0x1fffffu + ((magnitude >> 22) & 1u)) >> 22) - (126u << 1);
  if (magnitude < bits_as<uint32_t>(1.0f)) {
    code = bits_as<uint32_t>(bits_as<float>(magnitude) + 0x1p22f) - bits_as<uint32_t>(0x1p22f);
  }
  return static_cast<uint8_t>((bits >> 28 & 8u) | (code < 7u ? code : 7u));
}

}  // namespace blockdraft
