#if defined(__x86_64__)

#include <immintrin.h>

#include "base/target_options.h"
#include "ops/cpu/transpose.h"

BLOCKDRAFT_TARGET_BEGIN("avx512f")
namespace blockdraft::cpu {

// Pairs of rows, then fours, within lanes of 128 bits; then lanes.
void transpose_dwords_avx512(const std::byte* rows, int64_t row_bytes, std::byte* lines) {
  __m512i twos[16];
#pragma GCC unroll 8
  for (int r = 0; r < 16; r += 2) {
    const __m512i first = _mm512_loadu_si512(rows + r * row_bytes);
    const __m512i second = _mm512_loadu_si512(rows + (r + 1) * row_bytes);
    twos[r] = _mm512_unpacklo_epi32(first, second);
    twos[r + 1] = _mm512_unpackhi_epi32(first, second);
  }
  // fours[r + c] holds columns c, c + 4, c + 8 and c + 12 of rows r to r + 3.
  __m512i fours[16];
#pragma GCC unroll 4
  for (int r = 0; r < 16; r += 4) {
    fours[r] = _mm512_unpacklo_epi64(twos[r], twos[r + 2]);
    fours[r + 1] = _mm512_unpackhi_epi64(twos[r], twos[r + 2]);
    fours[r + 2] = _mm512_unpacklo_epi64(twos[r + 1], twos[r + 3]);
    fours[r + 3] = _mm512_unpackhi_epi64(twos[r + 1], twos[r + 3]);
  }
#pragma GCC unroll 4
  for (int c = 0; c < 4; ++c) {
    constexpr int kFirstTwo = 0x44, kLastTwo = 0xee, kEven = 0x88, kOdd = 0xdd;
    const __m512i low = _mm512_shuffle_i32x4(fours[c], fours[4 + c], kFirstTwo);
    const __m512i high = _mm512_shuffle_i32x4(fours[c], fours[4 + c], kLastTwo);
    const __m512i next_low = _mm512_shuffle_i32x4(fours[8 + c], fours[12 + c], kFirstTwo);
    const __m512i next_high = _mm512_shuffle_i32x4(fours[8 + c], fours[12 + c], kLastTwo);
    _mm512_storeu_si512(lines + c * 64, _mm512_shuffle_i32x4(low, next_low, kEven));
    _mm512_storeu_si512(lines + (4 + c) * 64, _mm512_shuffle_i32x4(low, next_low, kOdd));
    _mm512_storeu_si512(lines + (8 + c) * 64, _mm512_shuffle_i32x4(high, next_high, kEven));
    _mm512_storeu_si512(lines + (12 + c) * 64, _mm512_shuffle_i32x4(high, next_high, kOdd));
  }
}

}  // namespace blockdraft::cpu
BLOCKDRAFT_TARGET_END

#endif
