#include "cli/peak.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "base/target_options.h"

namespace blockdraft {
namespace {

// Chains of dependent steps: enough to hide the latency of a step, few enough for 16 registers.
constexpr int kChains = 12;
constexpr int64_t kSteps = 1 << 16;

PeakWork work_of(float result, int64_t floats_of_vector) { return {kSteps * kChains * floats_of_vector * 2, result}; }

PeakWork with_portable() {
  using Vector = float __attribute__((vector_size(16)));
  const Vector factor = {0.5f, 0.5f, 0.5f, 0.5f};
  const Vector term = {1, 2, 3, 4};
  Vector value[kChains];
  for (int i = 0; i < kChains; ++i) value[i] = term * static_cast<float>(i);
  for (int64_t step = 0; step < kSteps; ++step) {
#pragma GCC unroll 12
    for (int i = 0; i < kChains; ++i) value[i] = value[i] * factor + term;
  }
  Vector total = {};
  for (const Vector& chain : value) total += chain;
  return work_of(total[0] + total[1] + total[2] + total[3], 4);
}

#if defined(__x86_64__)
BLOCKDRAFT_TARGET_BEGIN("avx2,fma")
PeakWork with_avx2() {
  const __m256 factor = _mm256_set1_ps(0.5f);
  const __m256 term = _mm256_set1_ps(1.0f);
  __m256 value[kChains];
  for (int i = 0; i < kChains; ++i) value[i] = _mm256_set1_ps(static_cast<float>(i));
  for (int64_t step = 0; step < kSteps; ++step) {
#pragma GCC unroll 12
    for (int i = 0; i < kChains; ++i) value[i] = _mm256_fmadd_ps(value[i], factor, term);
  }
  __m256 total = _mm256_setzero_ps();
  for (const __m256& chain : value) total = _mm256_add_ps(total, chain);
  return work_of(_mm256_cvtss_f32(total), 8);
}
BLOCKDRAFT_TARGET_END

BLOCKDRAFT_TARGET_BEGIN("avx512f")
PeakWork with_avx512() {
  const __m512 factor = _mm512_set1_ps(0.5f);
  const __m512 term = _mm512_set1_ps(1.0f);
  __m512 value[kChains];
  for (int i = 0; i < kChains; ++i) value[i] = _mm512_set1_ps(static_cast<float>(i));
  for (int64_t step = 0; step < kSteps; ++step) {
#pragma GCC unroll 12
    for (int i = 0; i < kChains; ++i) value[i] = _mm512_fmadd_ps(value[i], factor, term);
  }
  __m512 total = _mm512_setzero_ps();
  for (const __m512& chain : value) total = _mm512_add_ps(total, chain);
  return work_of(_mm512_cvtss_f32(total), 16);
}
BLOCKDRAFT_TARGET_END

BLOCKDRAFT_TARGET_BEGIN("avx512bf16,avx512f")
PeakWork with_avx512_bf16() {
  const auto halves = reinterpret_cast<__m512bh>(_mm512_set1_epi32(0x3f003f00));  // 0.5 in BF16
  __m512 value[kChains];
  for (int i = 0; i < kChains; ++i) value[i] = _mm512_set1_ps(static_cast<float>(i));
  for (int64_t step = 0; step < kSteps; ++step) {
#pragma GCC unroll 12
    for (int i = 0; i < kChains; ++i) value[i] = _mm512_dpbf16_ps(value[i], halves, halves);
  }
  __m512 total = _mm512_setzero_ps();
  for (const __m512& chain : value) total = _mm512_add_ps(total, chain);
  return work_of(_mm512_cvtss_f32(total), 32);
}
BLOCKDRAFT_TARGET_END
#endif

}  // namespace

PeakWork multiply_and_add(CpuIsa isa) {
#if defined(__x86_64__)
  if (isa >= CpuIsa::avx512_bf16) return with_avx512_bf16();
  if (isa >= CpuIsa::avx512) return with_avx512();
  if (isa >= CpuIsa::avx2) return with_avx2();
#endif
  static_cast<void>(isa);
  return with_portable();
}

}  // namespace blockdraft
