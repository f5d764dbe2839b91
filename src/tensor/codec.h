// Stored number formats to float32, exactly. Loads go through memcpy: tensors in files need not be aligned.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace blockdraft {

template <class T>
inline T load_unaligned(const std::byte* address) {
  T value;
  std::memcpy(&value, address, sizeof(T));
  return value;
}

inline float float_from_bf16(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

// Round to nearest even. NaN stays NaN.
inline uint16_t bf16_from_float(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((bits >> 16) | 0x40u);
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

// Shifting the exponent and mantissa into place leaves a value 2^112 too small, subnormals included; the product is
// exact. Infinity and NaN (exponent 31) need the larger exponent put back.
inline float float_from_f16(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
  const uint32_t magnitude = static_cast<uint32_t>(bits & 0x7fffu) << 13;
  if ((bits & 0x7c00u) == 0x7c00u) return std::bit_cast<float>(sign | 0x7f800000u | magnitude);
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112f));
}

// E4M3 "fn": no infinity, largest 448. The NaN codes 0x7F and 0xFF come out as 480: loaders refuse them.
inline float float_from_f8_e4m3(uint8_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x80u) << 24;
  const uint32_t magnitude = static_cast<uint32_t>(bits & 0x7fu) << 20;
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) * 0x1p120f));
}

}  // namespace blockdraft
