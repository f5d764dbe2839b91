// Four neighbours of a row at a time. Whether they lie so that a vector instruction can take them changes no bit.
#pragma once

#include <cstdint>

#include "ops/cuda/element.cuh"
#include "tensor/tensor_view.h"

namespace blockdraft::cu {

// Those beyond `left` are zero, and not read.
template <bool kVector>
__device__ inline float4 load4(const float* address, int64_t left) {
  if constexpr (kVector) return *reinterpret_cast<const float4*>(address);
  return {address[0], left > 1 ? address[1] : 0.0f, left > 2 ? address[2] : 0.0f, left > 3 ? address[3] : 0.0f};
}

__device__ inline void store_vector(float* address, float4 v) { *reinterpret_cast<float4*>(address) = v; }
__device__ inline void store_vector(uint16_t* address, float4 v) {
  *reinterpret_cast<uint2*>(address) = {pack_bf16(v.x, v.y), pack_bf16(v.z, v.w)};
}

// Element: float, or uint16_t for BF16.
template <bool kVector, class Element>
__device__ inline void store4(Element* address, float4 value, int64_t left) {
  if constexpr (kVector) return store_vector(address, value);
  store(address, value.x);
  if (left > 1) store(address + 1, value.y);
  if (left > 2) store(address + 2, value.z);
  if (left > 3) store(address + 3, value.w);
}

// sum + the squares of v, one after the other.
__device__ inline float add_squares(float sum, float4 v) {
  sum = fmaf(v.x, v.x, sum);
  sum = fmaf(v.y, v.y, sum);
  sum = fmaf(v.z, v.z, sum);
  return fmaf(v.w, v.w, sum);
}

// What a norm multiplies its values with: 1 / the root of their mean square.
__device__ inline float norm_factor(float squares, int64_t dim, float eps) {
  return 1.0f / sqrtf(squares / static_cast<float>(dim) + eps);
}

__device__ inline float4 normed(float4 v, float factor, float4 weight) {
  return {v.x * factor * weight.x, v.y * factor * weight.y, v.z * factor * weight.z, v.w * factor * weight.w};
}

// Whether rows can be read and written as vectors.
inline bool is_in_fours(const ConstTensorView& view) {
  return reinterpret_cast<uintptr_t>(view.data) % (4 * size_of(view.dtype)) == 0 &&
         (view.shape.rank() < 2 || view.dim(0) <= 1 || view.row_stride % 4 == 0);
}

}  // namespace blockdraft::cu
