// AVX-512 for the kernels; simd_avx2.h has the same names. Included between BLOCKDRAFT_TARGET_BEGIN and _END, in one
// file per instruction set: everything is local to it.
#pragma once

namespace blockdraft::cpu {
namespace {

struct Avx512 {
  using Vec = __m512;
  using X = float;  // what a row of x is made of; a step of it, of weights, and of sums is a Vec
  using Value = Vec;
  using Sum = Vec;
  static constexpr int64_t kStep = 16;
  static constexpr int kMaxRows = 6;  // rows x 4 features of sums, 4 weights and a value fit into 32 registers

  static Vec zero() { return _mm512_setzero_ps(); }
  static Vec broadcast(float value) { return _mm512_set1_ps(value); }
  static Vec load(const float* address) { return _mm512_loadu_ps(address); }
  static Vec load_partly(const float* address, int64_t count) {
    float copy[kStep] = {};
    std::memcpy(copy, address, static_cast<size_t>(count) * sizeof(float));
    return load(copy);
  }
  static Vec multiply(Vec a, Vec b) { return _mm512_mul_ps(a, b); }
  static Vec multiply_add(Vec a, Vec b, Vec sum) { return _mm512_fmadd_ps(a, b, sum); }

  // kStep codes to float32, exactly; kF8Unit times less for E4M3.
  static constexpr float kF8Unit = 256.0f;
  static Vec from_f32(const std::byte* codes) { return _mm512_loadu_ps(codes); }
  static Vec from_f16(const std::byte* codes) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(codes)));
  }
  static Vec from_bf16(const std::byte* codes) {
    const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(codes));
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
  }
  // Sign, exponent and mantissa of E4M3 put into place make an F16 that is 2^8 too small.
  static Vec from_f8(const std::byte* codes) {
    const __m256i wide = _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(codes)));
    const __m256i shifted = _mm256_srai_epi16(_mm256_slli_epi16(wide, 8), 1);
    return _mm512_cvtph_ps(_mm256_and_si256(shifted, _mm256_set1_epi16(static_cast<int16_t>(0xbfff))));
  }
  // Codes of eight bytes, the low half of each first.
  static Vec from_e2m1(const std::byte* codes) {
    const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(codes));
    const __m128i low_first = _mm_unpacklo_epi8(bytes, _mm_srli_epi16(bytes, 4));
    const __m512i index = _mm512_cvtepu8_epi32(low_first);  // vpermps takes the low four bits
    const __m512 values = _mm512_setr_ps(0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f, -0.0f, -0.5f, -1.0f, -1.5f,
                                         -2.0f, -3.0f, -4.0f, -6.0f);
    return _mm512_permutexvar_ps(index, values);
  }

  // The sums over the lanes of four vectors: halves, then quarters, then pairs are added.
  static __m128 sum_lanes(Vec a, Vec b, Vec c, Vec d) {
    const Vec ab = _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x44), _mm512_shuffle_f32x4(a, b, 0xee));
    const Vec cd = _mm512_add_ps(_mm512_shuffle_f32x4(c, d, 0x44), _mm512_shuffle_f32x4(c, d, 0xee));
    const Vec all = _mm512_add_ps(_mm512_shuffle_f32x4(ab, cd, 0x88), _mm512_shuffle_f32x4(ab, cd, 0xdd));
    const Vec pairs = _mm512_add_ps(all, _mm512_permute_ps(all, 0x4e));
    const Vec sums = _mm512_add_ps(pairs, _mm512_permute_ps(pairs, 0xb1));
    return _mm512_castps512_ps128(
        _mm512_permutexvar_ps(_mm512_setr_epi32(0, 4, 8, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0), sums));
  }
};

}  // namespace
}  // namespace blockdraft::cpu
