// Arithmetic of float32 vectors beside that of simd_avx512.h; simd_math_avx2.h has the same names. Included like it.
#pragma once

#include "ops/cpu/simd_avx512.h"

namespace blockdraft::cpu {
namespace {

struct Avx512Math : Avx512 {
  static constexpr int64_t kLanes = 16;

  static Vec add(Vec a, Vec b) { return _mm512_add_ps(a, b); }
  static Vec subtract(Vec a, Vec b) { return _mm512_sub_ps(a, b); }
  static Vec divide(Vec a, Vec b) { return _mm512_div_ps(a, b); }
  // b where one of the two is NaN.
  static Vec min(Vec a, Vec b) { return _mm512_min_ps(a, b); }
  static Vec max(Vec a, Vec b) { return _mm512_max_ps(a, b); }
  static Vec round(Vec a) { return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
  // a * 2^n for whole n in [-252, 254].
  static Vec times_power_of_2(Vec a, Vec n) { return _mm512_scalef_ps(a, n); }

  static void store(float* address, Vec value) { _mm512_storeu_ps(address, value); }
  // The first count lanes, 0 to kLanes; the others are read as zeros and not written.
  static Vec load_first(const float* address, int64_t count) { return _mm512_maskz_loadu_ps(first(count), address); }
  static void store_first(float* address, Vec value, int64_t count) {
    _mm512_mask_storeu_ps(address, first(count), value);
  }
  static __mmask16 first(int64_t count) { return static_cast<__mmask16>((1u << count) - 1); }

  using Avx512::sum_lanes;
  static float sum_lanes(Vec a) { return _mm_cvtss_f32(sum_lanes(a, a, a, a)); }
  static float max_lane(Vec a) {
    const Vec halves = max(a, _mm512_shuffle_f32x4(a, a, 0x4e));
    const Vec quarters = max(halves, _mm512_shuffle_f32x4(halves, halves, 0xb1));
    const Vec pairs = max(quarters, _mm512_permute_ps(quarters, 0x4e));
    return _mm512_cvtss_f32(max(pairs, _mm512_permute_ps(pairs, 0xb1)));
  }
};

}  // namespace
}  // namespace blockdraft::cpu
