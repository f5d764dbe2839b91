// A weight matrix as it is stored.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "tensor/dtype.h"
#include "tensor/dword_pack.h"
#include "tensor/int8_pack.h"

namespace blockdraft {

inline constexpr int64_t kScaleBlock = 128;  // FP8 by blocks: one scale for so many rows and columns
inline constexpr int64_t kScaleGroup = 16;   // NVFP4: one scale for so many columns of a row

// W [out_features, in_features], row-major without gaps, in its storage type. Element (n, k) is, in float32 and in this
// order of operations,
//   F32, F16, BF16  code
//   F8_E4M3         code * row_scales[n]: the scale is applied to a finished sum over k, or
//                   code * block_scales[n / 128, k / 128]: applied to each element as it is decoded
//   U8 (NVFP4)      (code * group_scales[n, k / 16]) * global_scale: applied to each element. The first product is
//                   exact. Byte b of a row holds the E2M1 code of element 2b in its low half, of 2b + 1 in its high one
//   I8              code * the scale of its 32 columns: exact. Codes and scales lie as tensor/int8_pack.h says, not by
//                   rows; linear() rounds x, too (ops/linear.h)
// If is_packed, codes in BF16 or E4M3 lie as tensor/dword_pack.h says: only products with CpuIsa::avx512_bf16 read
// that. The scale kinds exclude each other; F8_E4M3 and U8 always have theirs (ops/check_weight.h). Owns nothing; the
// bytes need no alignment (they may lie in a mapped file), the floats do.
struct WeightView {
  const std::byte* data = nullptr;
  DType dtype = DType::bf16;
  int64_t out_features = 0;
  int64_t in_features = 0;                  // NVFP4: a multiple of kScaleGroup; I8: of kInt8Group
  const float* row_scales = nullptr;        // [out_features] or null
  const float* block_scales = nullptr;      // [ceil(out_features / 128), ceil(in_features / 128)] or null
  const std::byte* group_scales = nullptr;  // E4M3 codes [out_features, in_features / 16] or null
  float global_scale = 1.0f;                // with group_scales; a multiplier
  const float* bias = nullptr;              // [out_features] or null
  bool is_packed = false;                   // BF16, F8_E4M3

  int64_t row_bytes() const {  // of I8 and packed ones there are no rows
    return dtype == DType::u8 ? in_features / 2 : in_features * static_cast<int64_t>(size_of(dtype));
  }
  const std::byte* row(int64_t index) const {
    DCHECK(dtype != DType::i8 && !is_packed);
    return data + index * row_bytes();
  }
  // The first scale of a row; the next ones belong to the next 128 and 16 columns.
  const float* block_scales_of(int64_t index) const { return block_scales + index / kScaleBlock * scale_blocks(); }
  const std::byte* group_scales_of(int64_t index) const { return group_scales + index * (in_features / kScaleGroup); }
  int64_t scale_blocks() const { return (in_features + kScaleBlock - 1) / kScaleBlock; }  // of a row

  // Bytes that one pass over the weight reads.
  int64_t size_bytes() const {
    int64_t bytes = dtype == DType::i8 ? int8_bytes(out_features, in_features)
                    : is_packed        ? dword_packs_bytes(dtype, out_features, in_features)
                                       : row_bytes() * out_features;
    if (row_scales != nullptr) bytes += 4 * out_features;
    if (block_scales != nullptr) bytes += 4 * ((out_features + kScaleBlock - 1) / kScaleBlock) * scale_blocks();
    if (group_scales != nullptr) bytes += out_features * (in_features / kScaleGroup) + 4;
    if (bias != nullptr) bytes += 4 * out_features;
    return bytes;
  }
};

}  // namespace blockdraft
