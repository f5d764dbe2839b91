#include "ops/cpu/decode.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/check.h"
#include "ops/cpu/lanes.h"
#include "tensor/codec.h"

namespace blockdraft::cpu {

namespace {

BLOCKDRAFT_UNWATCHED void decode_bf16(const std::byte* codes, int64_t count, float* values) {
  for (int64_t i = 0; i < count; ++i) values[i] = float_from_bf16(load_unaligned<uint16_t>(codes + 2 * i));
}

// The codec multiplies a float that is subnormal where the code is; some processors take a hundred cycles for that.
// Here a subnormal code becomes a normal float with the implicit one, and that one is subtracted: also exact.
BLOCKDRAFT_UNWATCHED void decode_f16(const std::byte* codes, int64_t count, float* values) {
  constexpr int32_t kImplicitOne = 1 << 23;
  for (int64_t i = 0; i < count; ++i) {
    const auto code = static_cast<int32_t>(load_unaligned<uint16_t>(codes + 2 * i));
    const int32_t magnitude = (code & 0x7fff) << 13;
    const int32_t subnormal = -static_cast<int32_t>(magnitude < kImplicitOne);
    const int32_t special = -static_cast<int32_t>(magnitude >= (31 << 23));  // infinity, NaN
    const int32_t bits = magnitude + (112 << 23) + (special & (112 << 23)) + (subnormal & kImplicitOne);
    const auto excess = bits_as<float>(subnormal & bits_as<int32_t>(0x1p-14f));
    const auto value = bits_as<int32_t>(bits_as<float>(bits) - excess);
    values[i] = bits_as<float>(value | static_cast<int32_t>(static_cast<uint32_t>(code & 0x8000) << 16));
  }
}

// In steps of 16 bits, which work on twice as many codes at a time: code << 8 has the sign in place, four places down
// are the exponent and mantissa of a BF16 that is 2^120 too small. Subnormal codes are one in ten thousand where each
// row is scaled to its largest weight: here a slow product does no harm.
BLOCKDRAFT_UNWATCHED void decode_f8_e4m3(const std::byte* codes, int64_t count, float* values) {
  for (int64_t i = 0; i < count; ++i) {
    const auto high = static_cast<int16_t>(static_cast<uint16_t>(load_unaligned<uint8_t>(codes + i) << 8));
    const auto small = static_cast<uint16_t>(static_cast<int16_t>(high >> 4) & static_cast<int16_t>(0x87f0));
    values[i] = float_from_bf16(small) * 0x1p120f;
  }
}

// What each byte of NVFP4 stands for: the low half's element, the high half's.
using Vec2 = float __attribute__((vector_size(8)));
constexpr std::array<std::array<float, 2>, 256> kE2m1Pairs = [] {
  std::array<std::array<float, 2>, 256> pairs{};
  for (unsigned byte = 0; byte < 256; ++byte) {
    pairs[byte] = {float_from_e2m1(static_cast<uint8_t>(byte & 15u)), float_from_e2m1(static_cast<uint8_t>(byte >> 4))};
  }
  return pairs;
}();

BLOCKDRAFT_UNWATCHED Vec2 e2m1_pair(std::byte codes) {
  Vec2 pair;
  std::memcpy(&pair, kE2m1Pairs[std::to_integer<size_t>(codes)].data(), sizeof(pair));
  return pair;
}

// From a table in the first-level cache, two elements at a time: the conversion in arithmetic takes more instructions,
// and its subnormal codes, 0.5 and -0.5, are too frequent for slow products.
BLOCKDRAFT_UNWATCHED void decode_nvfp4(const std::byte* codes, const std::byte* group_scales, float global_scale,
                                       int64_t count, float* values) {
  const Vec4 global = broadcast4(global_scale);
  for (int64_t i = 0; i < count; i += kScaleGroup) {
    const Vec4 scale = broadcast4(float_from_f8_e4m3(load_unaligned<uint8_t>(group_scales + i / kScaleGroup)));
    for (int64_t j = i; j < i + kScaleGroup; j += 4) {
      const Vec2 low = e2m1_pair(codes[j / 2]);
      const Vec2 high = e2m1_pair(codes[j / 2 + 1]);
      store4(values + j, (Vec4{low[0], low[1], high[0], high[1]} * scale) * global);
    }
  }
}

BLOCKDRAFT_UNWATCHED void decode_int8(const WeightView& weight, int64_t row, int64_t first, int64_t count,
                                      float* values) {
  for (int64_t i = 0; i < count; ++i) {
    const int64_t k = first + i;
    const auto code = load_unaligned<uint8_t>(weight.data + int8_code_offset(weight.in_features, row, k));
    const std::byte* scale = weight.data + int8_scale_offset(weight.in_features, row, k / kInt8Group);
    values[i] = static_cast<float>(code - kInt8Offset) * float_from_f16(load_unaligned<uint16_t>(scale));
  }
}

BLOCKDRAFT_UNWATCHED void multiply_all(float* values, int64_t count, float factor) {
  for (int64_t i = 0; i < count; ++i) values[i] *= factor;
}

}  // namespace

void decode(const WeightView& weight, int64_t row, int64_t first, int64_t count, float* values) {
  DCHECK(first % kScaleBlock == 0);
  if (weight.dtype == DType::u8) {
    return decode_nvfp4(weight.row(row) + first / 2, weight.group_scales_of(row) + first / kScaleGroup,
                        weight.global_scale, count, values);
  }
  if (weight.dtype == DType::i8) return decode_int8(weight, row, first, count, values);
  decode_codes(weight.dtype, weight.row(row) + first * static_cast<int64_t>(size_of(weight.dtype)), count, values);
  if (weight.block_scales == nullptr) return;
  const float* scales = weight.block_scales_of(row) + first / kScaleBlock;
  for (int64_t i = 0; i < count; i += kScaleBlock) {
    multiply_all(values + i, std::min(kScaleBlock, count - i), scales[i / kScaleBlock]);
  }
}

void decode_row(const WeightView& weight, int64_t row, float* values) {
  decode(weight, row, 0, weight.in_features, values);
  if (weight.row_scales != nullptr) multiply_all(values, weight.in_features, weight.row_scales[row]);
}

void decode_codes(DType dtype, const std::byte* codes, int64_t count, float* values) {
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
