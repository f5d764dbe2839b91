// quantize_row of int8_rows.h, in loops that vectorize. Included once for each instruction set, between
// BLOCKDRAFT_TARGET_BEGIN and _END or without them: everything is local to the file.
#pragma once

namespace blockdraft::cpu {
namespace {

// The largest magnitude as bits: they are ordered as the magnitudes are, with infinity and NaN above all numbers.
BLOCKDRAFT_UNWATCHED inline int32_t largest_bits(const float* x) {
  int32_t largest = 0;
  for (int64_t k = 0; k < kInt8Group; ++k) {
    int32_t bits;
    __builtin_memcpy(&bits, x + k, sizeof(bits));
    bits &= 0x7fffffff;
    largest = bits > largest ? bits : largest;
  }
  return largest;
}

// Codes of a group whose scale is a normal number. 1.5 * 2^23 has a spacing of 1 around it: the sum rounds to nearest
// even, and its low bits are the code.
BLOCKDRAFT_UNWATCHED inline int32_t quantize_values(const float* x, float scale, int8_t* codes) {
  constexpr float kRounder = 0x1.8p23f;
  int32_t sum = 0;
  for (int64_t k = 0; k < kInt8Group; ++k) {
    const float rounded = x[k] / scale + kRounder;
    int32_t code;
    __builtin_memcpy(&code, &rounded, sizeof(code));
    code -= 0x4b400000;  // the bits of kRounder
    codes[k] = static_cast<int8_t>(code);
    sum += code;
  }
  return sum;
}

BLOCKDRAFT_UNWATCHED inline void quantize_row(const float* x, const Int8Rows& rows, int64_t row) {
  constexpr int32_t kInfinity = 0x7f800000;
  for (int64_t g = 0; g < rows.groups; ++g) {
    const float* values = x + g * kInt8Group;
    int8_t* codes = rows.codes_of(g, row);
    const int32_t bits = largest_bits(values);
    float largest;
    __builtin_memcpy(&largest, &bits, sizeof(largest));
    float scale = largest / 127.0f;
    int32_t sum = 0;
    if (bits < kInfinity && scale >= 0x1p-126f) {
      sum = quantize_values(values, scale, codes);
    } else {
      scale = bits < kInfinity ? 0.0f : __builtin_nanf("");
      __builtin_memset(codes, 0, kInt8Group);
    }
    rows.scales[rows.index(g, row)] = scale;
    rows.starts[rows.index(g, row)] = -kInt8Offset * sum;
  }
}

}  // namespace
}  // namespace blockdraft::cpu
