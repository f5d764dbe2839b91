#include "ops/cpu/decode.h"

#include <bit>
#include <cstring>

#include "base/check.h"
#include "tensor/codec.h"

namespace blockdraft::cpu {

namespace {

void decode_bf16(const std::byte* codes, int64_t count, float* values) {
  for (int64_t i = 0; i < count; ++i) values[i] = float_from_bf16(load_unaligned<uint16_t>(codes + 2 * i));
}

// The codec multiplies a float that is subnormal where the code is; some processors take a hundred cycles for that.
// Here a subnormal code becomes a normal float with the implicit one, and that one is subtracted: also exact.
void decode_f16(const std::byte* codes, int64_t count, float* values) {
  constexpr int32_t kImplicitOne = 1 << 23;
  for (int64_t i = 0; i < count; ++i) {
    const auto code = static_cast<int32_t>(load_unaligned<uint16_t>(codes + 2 * i));
    const int32_t magnitude = (code & 0x7fff) << 13;
    const int32_t subnormal = -static_cast<int32_t>(magnitude < kImplicitOne);
    const int32_t special = -static_cast<int32_t>(magnitude >= (31 << 23));  // infinity, NaN
    const int32_t bits = magnitude + (112 << 23) + (special & (112 << 23)) + (subnormal & kImplicitOne);
    const auto excess = std::bit_cast<float>(subnormal & std::bit_cast<int32_t>(0x1p-14f));
    const auto value = std::bit_cast<int32_t>(std::bit_cast<float>(bits) - excess);
    values[i] = std::bit_cast<float>(value | static_cast<int32_t>(static_cast<uint32_t>(code & 0x8000) << 16));
  }
}

// In steps of 16 bits, which work on twice as many codes at a time: code << 8 has the sign in place, four places down
// are the exponent and mantissa of a BF16 that is 2^120 too small. Subnormal codes are one in ten thousand where each
// row is scaled to its largest weight: here a slow product does no harm.
void decode_f8_e4m3(const std::byte* codes, int64_t count, float* values) {
  for (int64_t i = 0; i < count; ++i) {
    const auto high = static_cast<int16_t>(static_cast<uint16_t>(load_unaligned<uint8_t>(codes + i) << 8));
    const auto small = static_cast<uint16_t>(static_cast<int16_t>(high >> 4) & static_cast<int16_t>(0x87f0));
    values[i] = float_from_bf16(small) * 0x1p120f;
  }
}

}  // namespace

void decode(DType dtype, const std::byte* codes, int64_t count, float* values) {
  switch (dtype) {
    case DType::f32:
      std::memcpy(values, codes, static_cast<size_t>(count) * sizeof(float));
      return;
    case DType::f16:
      return decode_f16(codes, count, values);
    case DType::bf16:
      return decode_bf16(codes, count, values);
    case DType::f8_e4m3:
      return decode_f8_e4m3(codes, count, values);
    default:
      CHECK(!"a type that weights are stored in");
  }
}

}  // namespace blockdraft::cpu
