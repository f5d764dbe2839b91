// How a BF16 or FP8 weight lies in memory where products with vdpbf16ps read it (WeightView::is_packed).
//
// 16 output features make a pack, packs follow one another. A pack is lines of 64 bytes, each with four bytes of every
// feature side by side: two columns of BF16 or four of FP8. So a vector is a few columns of 16 features, sums of
// different features lie in different lanes, and a pack is read from front to back. It has whole quads, which are four
// columns; what it has beyond the weight is zero. Scales and bias stay where they are.
#pragma once

#include <cstdint>

#include "tensor/dtype.h"
#include "tensor/int8_pack.h"

namespace blockdraft {

inline constexpr int64_t kDwordBytes = 4;
inline constexpr int64_t kLineBytes = kPackFeatures * kDwordBytes;
inline constexpr int64_t kQuad = 4;  // columns

constexpr bool has_dword_packs(DType dtype) { return dtype == DType::bf16 || dtype == DType::f8_e4m3; }

// Of such a type.
constexpr int64_t dword_line_columns(DType dtype) { return dtype == DType::bf16 ? 2 : 4; }
constexpr int64_t num_quads(int64_t in_features) { return (in_features + kQuad - 1) / kQuad; }
constexpr int64_t quad_bytes(DType dtype) { return kQuad / dword_line_columns(dtype) * kLineBytes; }
constexpr int64_t dword_pack_bytes(DType dtype, int64_t in_features) {
  return num_quads(in_features) * quad_bytes(dtype);
}
constexpr int64_t dword_packs_bytes(DType dtype, int64_t out_features, int64_t in_features) {
  return num_packs(out_features) * dword_pack_bytes(dtype, in_features);
}

// Where element (feature, k) lies, from the first byte of the weight on.
constexpr int64_t dword_code_offset(DType dtype, int64_t in_features, int64_t feature, int64_t k) {
  const int64_t columns = dword_line_columns(dtype);
  return feature / kPackFeatures * dword_pack_bytes(dtype, in_features) + k / columns * kLineBytes +
         feature % kPackFeatures * kDwordBytes + k % columns * (kDwordBytes / columns);
}

}  // namespace blockdraft
