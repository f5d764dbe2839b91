// AVX2 with FMA and F16C for the kernels; see simd_avx512.h.
#pragma once

namespace blockdraft::cpu {
namespace {

struct Avx2 {
  using Vec = __m256;
  using X = float;  // what a row of x is made of; a step of it, of weights, and of sums is a Vec
  using Value = Vec;
  using Sum = Vec;
  static constexpr int64_t kStep = 8;
  static constexpr int kMaxRows = 2;  // 8 sums, 4 weights and a value fit into 16 registers

  static Vec zero() { return _mm256_setzero_ps(); }
  static Vec broadcast(float value) { return _mm256_set1_ps(value); }
  static Vec load(const float* address) { return _mm256_loadu_ps(address); }
  static Vec load_partly(const float* address, int64_t count) {
    float copy[kStep] = {};
    std::memcpy(copy, address, static_cast<size_t>(count) * sizeof(float));
    return load(copy);
  }
  static Vec multiply(Vec a, Vec b) { return _mm256_mul_ps(a, b); }
  static Vec multiply_add(Vec a, Vec b, Vec sum) { return _mm256_fmadd_ps(a, b, sum); }

  static constexpr float kF8Unit = 256.0f;
  static Vec from_f32(const std::byte* codes) { return _mm256_loadu_ps(reinterpret_cast<const float*>(codes)); }
  static Vec from_f16(const std::byte* codes) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(codes)));
  }
  static Vec from_bf16(const std::byte* codes) {
    const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(codes));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
  }
  static Vec from_f8(const std::byte* codes) {
    const __m128i wide = _mm_cvtepu8_epi16(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(codes)));
    const __m128i shifted = _mm_srai_epi16(_mm_slli_epi16(wide, 8), 1);
    return _mm256_cvtph_ps(_mm_and_si128(shifted, _mm_set1_epi16(static_cast<int16_t>(0xbfff))));
  }
  // The magnitudes, doubled, out of a table of bytes; the sign is bit 3.
  static Vec from_e2m1(const std::byte* codes) {
    int32_t four_bytes;
    std::memcpy(&four_bytes, codes, sizeof(four_bytes));
    const __m128i bytes = _mm_cvtsi32_si128(four_bytes);
    const __m128i low_first = _mm_unpacklo_epi8(bytes, _mm_srli_epi16(bytes, 4));
    const __m128i twice = _mm_setr_epi8(0, 1, 2, 3, 4, 6, 8, 12, 0, 1, 2, 3, 4, 6, 8, 12);
    const __m128i magnitudes = _mm_shuffle_epi8(twice, _mm_and_si128(low_first, _mm_set1_epi8(15)));
    const __m256i signs = _mm256_slli_epi32(_mm256_cvtepu8_epi32(_mm_and_si128(low_first, _mm_set1_epi8(8))), 28);
    const Vec values = _mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(magnitudes)), broadcast(0.5f));
    return _mm256_or_ps(values, _mm256_castsi256_ps(signs));
  }

  // The sums over the lanes of four vectors: halves, then pairs are added.
  static __m128 sum_lanes(Vec a, Vec b, Vec c, Vec d) {
    const Vec ab = _mm256_hadd_ps(a, b);
    const Vec cd = _mm256_hadd_ps(c, d);
    const Vec all = _mm256_hadd_ps(ab, cd);
    return _mm_add_ps(_mm256_castps256_ps128(all), _mm256_extractf128_ps(all, 1));
  }
};

}  // namespace
}  // namespace blockdraft::cpu
