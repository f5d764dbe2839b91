// A weight matrix as it is stored.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/dtype.h"

namespace blockdraft {

// W [out_features, in_features], row-major without gaps, in its storage type: BF16, F16, F32 or FP8 E4M3.
// The value of an element is code * row_scales[row]; row_scales is null for the unscaled types and never for FP8.
// Owns nothing; the bytes need no alignment (they may lie in a mapped file), the floats do.
struct WeightView {
  const std::byte* data = nullptr;
  DType dtype = DType::bf16;
  int64_t out_features = 0;
  int64_t in_features = 0;
  const float* row_scales = nullptr;  // [out_features] or null
  const float* bias = nullptr;        // [out_features] or null

  const std::byte* row(int64_t index) const { return data + static_cast<size_t>(index * in_features) * size_of(dtype); }
  // Bytes that one pass over the weight reads.
  int64_t size_bytes() const {
    const auto values = static_cast<int64_t>(size_of(dtype)) * out_features * in_features;
    const int64_t companions = (row_scales != nullptr ? 1 : 0) + (bias != nullptr ? 1 : 0);
    return values + companions * 4 * out_features;
  }
};

}  // namespace blockdraft
