// Elements of stored weights in float32 (tensor/weight_view.h).
#pragma once

#include <cstdint>

#include "tensor/codec.h"
#include "tensor/weight_view.h"

namespace blockdraft::cu {

__device__ inline float code_as_float(DType dtype, const std::byte* codes, int64_t index) {
  switch (dtype) {
    case DType::f32:
      return reinterpret_cast<const float*>(codes)[index];
    case DType::f16:
      return float_from_f16(reinterpret_cast<const uint16_t*>(codes)[index]);
    case DType::bf16:
      return float_from_bf16(reinterpret_cast<const uint16_t*>(codes)[index]);
    case DType::f8_e4m3:
      return float_from_f8_e4m3(static_cast<uint8_t>(codes[index]));
    default: {
      const auto pair = static_cast<uint8_t>(codes[index / 2]);
      return float_from_e2m1(static_cast<uint8_t>(index % 2 == 0 ? pair & 15 : pair >> 4));
    }
  }
}

// Element (n, k) with its scales except the row scale, which a product applies to its sum.
__device__ inline float element_before_row_scale(const WeightView& weight, int64_t n, int64_t k) {
  if (weight.dtype == DType::i8) {
    const int code = static_cast<int>(weight.data[int8_code_offset(weight.in_features, n, k)]) - kInt8Offset;
    const std::byte* scale = weight.data + int8_scale_offset(weight.in_features, n, k / kInt8Group);
    return static_cast<float>(code) * float_from_f16(*reinterpret_cast<const uint16_t*>(scale));
  }
  const int64_t row_bytes = weight.dtype == DType::u8        ? weight.in_features / 2
                            : weight.dtype == DType::f32     ? weight.in_features * 4
                            : weight.dtype == DType::f8_e4m3 ? weight.in_features
                                                             : weight.in_features * 2;
  const float code = code_as_float(weight.dtype, weight.data + n * row_bytes, k);
  if (weight.block_scales != nullptr) {
    const int64_t blocks = (weight.in_features + kScaleBlock - 1) / kScaleBlock;
    return code * weight.block_scales[n / kScaleBlock * blocks + k / kScaleBlock];
  }
  if (weight.group_scales != nullptr) {
    const std::byte scale = weight.group_scales[n * (weight.in_features / kScaleGroup) + k / kScaleGroup];
    return code * float_from_f8_e4m3(static_cast<uint8_t>(scale)) * weight.global_scale;
  }
  return code;
}

__device__ inline float row_scale(const WeightView& weight, int64_t n) {
  return weight.row_scales == nullptr ? 1.0f : weight.row_scales[n];
}

}  // namespace blockdraft::cu
