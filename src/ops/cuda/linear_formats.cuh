// How the stream kernel reads the weight formats: a unit (128 columns) of 8 weight rows at a time, multiplied with a
// unit of 16 rows of x in eight matrix instructions.
//
// Lane 4g + t of a warp reads 16 bytes in a row of row g of the weight, so that no shuffle is needed; which columns
// those are depends on the format, and x is laid out to match: the columns of a matrix instruction may come in any
// order as long as both sides agree.
#pragma once

#include <cstdint>

#include "ops/cuda/ptx.cuh"

namespace blockdraft::cu {

// x of one unit and 16 rows, as A fragments of eight matrix instructions.
using XUnit = uint32_t[8][4];

// The half words 0 of a and b, and their half words 1.
__device__ __forceinline__ uint32_t low_halves(uint32_t a, uint32_t b) { return __byte_perm(a, b, 0x5410); }
__device__ __forceinline__ uint32_t high_halves(uint32_t a, uint32_t b) { return __byte_perm(a, b, 0x7632); }

// B fragment of a step: two registers.
struct Fragment {
  uint32_t first, second;
};

struct Bf16Format {
  static constexpr int kUnitBytes = 256;  // of a row
  static constexpr int kLoads = 4;        // of 16 bytes a lane and unit
  static constexpr int kStageRows = 8;    // weight rows that are copied together
  static constexpr int kCopyWarps = 1;
  static constexpr float kXScale = 1.0f;    // what x is multiplied with, a power of two
  static constexpr float kSumScale = 1.0f;  // and the finished sums
  static constexpr bool kHasBlockScales = false;

  // The first of 8 columns that a lane has next to one another, the i-th time of four.
  static __device__ __forceinline__ int column(int i, int t) { return i * 32 + t * 8; }

  // From 8 columns of row g (low) and of row g + 8 (high), the i-th time.
  static __device__ __forceinline__ void place(XUnit& x, int i, uint4 low, uint4 high) {
    uint32_t* first = x[2 * i];
    uint32_t* second = x[2 * i + 1];
    first[0] = low.x, first[1] = high.x, first[2] = low.y, first[3] = high.y;
    second[0] = low.z, second[1] = high.z, second[2] = low.w, second[3] = high.w;
  }

  // What a lane knows of a unit beside its codes.
  struct Scales {};

  // Step kStep of those that a load makes.
  template <int kStep>
  static __device__ __forceinline__ Fragment fragment(uint4 codes, const Scales&) {
    return kStep == 0 ? Fragment{codes.x, codes.y} : Fragment{codes.z, codes.w};
  }
};

template <int kIndex>
__device__ __forceinline__ uint32_t word_of(uint4 v) {
  return kIndex == 0 ? v.x : kIndex == 1 ? v.y : kIndex == 2 ? v.z : v.w;
}

// E4M3 codes shifted into the fields of BF16 are too small by 2^120, subnormal ones included. x is made larger by half
// of that, which keeps it in range below 2^67 and partial sums far from the subnormal numbers, and the sums by the
// rest.
template <bool kByBlocks>
struct F8Format {
  static constexpr int kUnitBytes = 128;
  static constexpr int kLoads = 2;
  static constexpr int kStageRows = 16;
  static constexpr int kCopyWarps = 1;
  static constexpr float kXScale = 0x1p60f;
  static constexpr float kSumScale = 0x1p60f;
  static constexpr bool kHasBlockScales = kByBlocks;

  static __device__ __forceinline__ int column(int i, int t) { return (i / 2) * 64 + t * 16 + (i % 2) * 8; }

  // Of four codes in a word, a step takes 0 and 2 as its first pair of columns, 1 and 3 as the second.
  static __device__ __forceinline__ void place(XUnit& x, int i, uint4 low, uint4 high) {
    uint32_t* first = x[2 * i];
    uint32_t* second = x[2 * i + 1];
    first[0] = low_halves(low.x, low.y), first[1] = low_halves(high.x, high.y);
    first[2] = high_halves(low.x, low.y), first[3] = high_halves(high.x, high.y);
    second[0] = low_halves(low.z, low.w), second[1] = low_halves(high.z, high.w);
    second[2] = high_halves(low.z, low.w), second[3] = high_halves(high.z, high.w);
  }

  struct Scales {};

  template <int kStep>
  static __device__ __forceinline__ Fragment fragment(uint4 codes, const Scales&) {
    const uint32_t word = word_of<kStep>(codes);
    const uint32_t up = word << 8;
    return {(up & 0x80008000u) | ((word << 4) & 0x07f007f0u), (word & 0x80008000u) | ((word >> 4) & 0x07f007f0u)};
  }
};

// E2M1 codes shifted into the fields of BF16 are too small by 2^126. They are multiplied with the scale of their group
// times 2^119, which is in range, and exact: a product of 2 and 4 bits. What is missing, 2^7, goes to the finished sum.
struct Fp4Format {
  static constexpr int kUnitBytes = 64;
  static constexpr int kLoads = 1;
  static constexpr int kStageRows = 16;
  static constexpr int kCopyWarps = 2;  // one takes longer to ask for a row than memory to bring it
  static constexpr float kXScale = 1.0f;
  static constexpr float kSumScale = 128.0f;
  static constexpr bool kHasBlockScales = false;

  static __device__ __forceinline__ int column(int i, int t) { return t * 32 + i * 8; }

  // Of eight codes in a word, steps take the pairs (0, 4) and (1, 5), then (2, 6) and (3, 7).
  static __device__ __forceinline__ void place(XUnit& x, int i, uint4 low, uint4 high) {
    uint32_t* first = x[2 * i];
    uint32_t* second = x[2 * i + 1];
    first[0] = low_halves(low.x, low.z), first[1] = low_halves(high.x, high.z);
    first[2] = high_halves(low.x, low.z), first[3] = high_halves(high.x, high.z);
    second[0] = low_halves(low.y, low.w), second[1] = low_halves(high.y, high.w);
    second[2] = high_halves(low.y, low.w), second[3] = high_halves(high.y, high.w);
  }

  // The E4M3 scales of a lane's two groups, times 2^119, each twice.
  struct Scales {
    uint32_t of_group[2];

    __device__ __forceinline__ void set(uint32_t codes) {
      uint32_t halves;
      asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(halves) : "h"(static_cast<uint16_t>(codes)));
      const float2 values = __half22float2(*reinterpret_cast<const __half2*>(&halves));
      of_group[0] = pack_bf16(values.x * 0x1p119f, values.x * 0x1p119f);
      of_group[1] = pack_bf16(values.y * 0x1p119f, values.y * 0x1p119f);
    }
  };

  // Codes kIndex and kIndex + 4 of a word.
  template <int kIndex>
  static __device__ __forceinline__ uint32_t decode(uint32_t word, uint32_t scale) {
    const uint32_t sign = kIndex < 3 ? word << (12 - 4 * kIndex) : word;
    const uint32_t magnitude = kIndex < 2 ? word << (6 - 4 * kIndex) : word >> (4 * kIndex - 6);
    return multiply_bf16x2((sign & 0x80008000u) | (magnitude & 0x01c001c0u), scale);
  }

  template <int kStep>
  static __device__ __forceinline__ Fragment fragment(uint4 codes, const Scales& scales) {
    const uint32_t word = word_of<kStep / 2>(codes);
    const uint32_t scale = scales.of_group[kStep / 4];
    return {decode<kStep % 2 * 2>(word, scale), decode<kStep % 2 * 2 + 1>(word, scale)};
  }
};

}  // namespace blockdraft::cu
