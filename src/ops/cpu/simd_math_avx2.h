// See simd_math_avx512.h.
#pragma once

#include "ops/cpu/simd_avx2.h"

namespace blockdraft::cpu {
namespace {

struct Avx2Math : Avx2 {
  static constexpr int64_t kLanes = 8;

  static Vec add(Vec a, Vec b) { return _mm256_add_ps(a, b); }
  static Vec subtract(Vec a, Vec b) { return _mm256_sub_ps(a, b); }
  static Vec divide(Vec a, Vec b) { return _mm256_div_ps(a, b); }
  static Vec min(Vec a, Vec b) { return _mm256_min_ps(a, b); }
  static Vec max(Vec a, Vec b) { return _mm256_max_ps(a, b); }
  static Vec round(Vec a) { return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
  // In two steps, so that neither factor leaves the range of normal numbers.
  static Vec times_power_of_2(Vec a, Vec n) {
    const __m256i whole = _mm256_cvtps_epi32(n);
    const __m256i half = _mm256_srai_epi32(whole, 1);
    return multiply(multiply(a, power_of_2(half)), power_of_2(_mm256_sub_epi32(whole, half)));
  }
  static Vec power_of_2(__m256i n) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(n, _mm256_set1_epi32(127)), 23));
  }

  static void store(float* address, Vec value) { _mm256_storeu_ps(address, value); }
  static Vec load_first(const float* address, int64_t count) { return _mm256_maskload_ps(address, first(count)); }
  static void store_first(float* address, Vec value, int64_t count) {
    _mm256_maskstore_ps(address, first(count), value);
  }
  static __m256i first(int64_t count) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int32_t>(count)),
                              _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  }

  using Avx2::sum_lanes;
  static float sum_lanes(Vec a) { return _mm_cvtss_f32(sum_lanes(a, a, a, a)); }
  static float max_lane(Vec a) {
    const __m128 halves = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    const __m128 quarters = _mm_max_ps(halves, _mm_movehl_ps(halves, halves));
    return _mm_cvtss_f32(_mm_max_ss(quarters, _mm_movehdup_ps(quarters)));
  }
};

}  // namespace
}  // namespace blockdraft::cpu
