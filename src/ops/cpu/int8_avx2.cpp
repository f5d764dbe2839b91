#if defined(__x86_64__)

#include <cstring>

#include <immintrin.h>

#include "base/check.h"
#include "base/target_options.h"
#include "base/unwatched.h"
#include "ops/cpu/linear_slice.h"

BLOCKDRAFT_TARGET_BEGIN("avx2,fma,f16c")
#include "ops/cpu/int8_finish.h"
#include "ops/cpu/int8_quantize.h"

namespace blockdraft::cpu {
namespace {

constexpr int kMaxRows = 3;  // of 4 vectors each: two of totals and two of sums

// Four columns of 8 features with four activations. Two products of an unsigned and a signed byte may not fit into the
// 16 bits that vpmaddubsw has: so the weight's sign goes to the activation, and 2 * 128 * 127 does fit.
inline __m256i add_products(__m256i total, __m256i magnitudes, __m256i weights, __m256i x) {
  const __m256i pairs = _mm256_maddubs_epi16(magnitudes, _mm256_sign_epi8(x, weights));
  return _mm256_add_epi32(total, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}

inline __m256i four_activations(const int8_t* x) {
  int32_t four;
  std::memcpy(&four, x, sizeof(four));
  return _mm256_set1_epi32(four);
}

template <int kRows>
BLOCKDRAFT_UNWATCHED void multiply_rows(const std::byte* pack, const Int8Rows& x, int64_t first_row,
                                        float (*sums)[kPackFeatures]) {
  const std::byte* scales = pack + x.groups * kPackGroupCodes;
  __m256 sum[kRows][2];
  for (int r = 0; r < kRows; ++r) sum[r][0] = sum[r][1] = _mm256_setzero_ps();
  for (int64_t g = 0; g < x.groups; ++g) {
    const int8_t* codes = x.codes_of(g, first_row);
    __m256i total[kRows][2];
    for (int r = 0; r < kRows; ++r) total[r][0] = total[r][1] = _mm256_setzero_si256();
    for (int64_t v = 0; v < kInt8Group / 4; ++v) {
      for (int half = 0; half < 2; ++half) {
        const auto* bytes = reinterpret_cast<const __m256i*>(pack + g * kPackGroupCodes + v * 64 + half * 32);
        const __m256i weights =
            _mm256_xor_si256(_mm256_loadu_si256(bytes), _mm256_set1_epi8(static_cast<char>(kInt8Offset)));
        const __m256i magnitudes = _mm256_abs_epi8(weights);
        for (int r = 0; r < kRows; ++r) {
          const __m256i four = four_activations(codes + r * kInt8Group + 4 * v);
          total[r][half] = add_products(total[r][half], magnitudes, weights, four);
        }
      }
    }
    for (int half = 0; half < 2; ++half) {
      const auto* halves = reinterpret_cast<const __m128i*>(scales + g * kPackGroupScales + half * 16);
      const __m256 weight_scale = _mm256_cvtph_ps(_mm_loadu_si128(halves));
      for (int r = 0; r < kRows; ++r) {
        const __m256 scale = _mm256_mul_ps(weight_scale, _mm256_set1_ps(x.scales[x.index(g, first_row + r)]));
        sum[r][half] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(total[r][half]), scale, sum[r][half]);
      }
    }
  }
  for (int r = 0; r < kRows; ++r) {
    _mm256_storeu_ps(sums[r], sum[r][0]);
    _mm256_storeu_ps(sums[r] + 8, sum[r][1]);
  }
}

template <int kRows>
void multiply_some(const std::byte* pack, const Int8Rows& x, int64_t first_row, int64_t rows,
                   float (*sums)[kPackFeatures]) {
  if constexpr (kRows > 1) {
    if (rows < kRows) return multiply_some<kRows - 1>(pack, x, first_row, rows, sums);
  }
  multiply_rows<kRows>(pack, x, first_row, sums);
}

}  // namespace

void quantize_row_avx2(const float* x, const Int8Rows& rows, int64_t row) { quantize_row(x, rows, row); }

void multiply_int8_avx2(const LinearTask& task, const Slice& slice) {
  const LinearArgs& args = task.args;
  const Int8Rows& x = task.int8;
  for_each_pack(slice, [&](const std::byte* pack, int64_t n, int64_t count) {
    for (int64_t r = 0; r < args.x.dim(0); r += kMaxRows) {
      const int64_t rows = args.x.dim(0) - r < kMaxRows ? args.x.dim(0) - r : kMaxRows;
      float sums[kMaxRows][kPackFeatures];
      multiply_some<kMaxRows>(pack, x, r, rows, sums);
      for (int64_t i = 0; i < rows; ++i) finish_pack(args, slice, r + i, n, count, sums[i]);
    }
  });
}

}  // namespace blockdraft::cpu
BLOCKDRAFT_TARGET_END

#endif
