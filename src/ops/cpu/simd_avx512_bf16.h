// AVX-512 BF16 for products of rows of BF16: vdpbf16ps adds two exact products to each of 16 float32 sums; subnormal
// inputs count as zero. See simd_avx512.h.
#pragma once

namespace blockdraft::cpu {
namespace {

struct Avx512Bf16 {
  struct Value {  // kStep numbers in sequence
    __m512i low, high;
  };
  using X = uint16_t;
  using Sum = __m512;
  static constexpr int64_t kStep = kBf16Step;
  static constexpr int kMaxRows = 5;  // rows x 4 features of sums, 8 vectors of weights and 2 of x in 32 registers

  static Sum zero() { return _mm512_setzero_ps(); }
  static Value load(const X* address) { return {_mm512_loadu_si512(address), _mm512_loadu_si512(address + 32)}; }
  static Value load_partly(const X* address, int64_t) { return load(address); }  // rows of x are padded
  static void store(X* address, Value value) {
    _mm512_store_si512(address, value.low);
    _mm512_store_si512(address + 32, value.high);
  }
  static Sum multiply_add(__m512i a, __m512i b, Sum sum) {
    return _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(a), reinterpret_cast<__m512bh>(b));
  }
  static Sum multiply_add(Value a, Value b, Sum sum) {
    return multiply_add(a.high, b.high, multiply_add(a.low, b.low, sum));
  }
  static Sum add_scaled(Sum a, float scale, Sum sum) { return _mm512_fmadd_ps(a, _mm512_set1_ps(scale), sum); }
  static __m128 sum_lanes(Sum a, Sum b, Sum c, Sum d) { return Avx512::sum_lanes(a, b, c, d); }

  static Value from_bf16(const std::byte* codes) { return {_mm512_loadu_si512(codes), _mm512_loadu_si512(codes + 64)}; }

  static constexpr float kF8Unit = 1.0f;
  static Value from_f8(const std::byte* codes) {
    // Eight bytes at a time go where interleaving within 16 bytes leaves the codes in sequence.
    const __m512i places = _mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7);
    const __m512i mixed = _mm512_permutexvar_epi64(places, _mm512_loadu_si512(codes));
    const __m512i high = f8_high_bytes(mixed);
    const __m512i low = f8_low_bytes(mixed);
    return {_mm512_unpacklo_epi8(low, high), _mm512_unpackhi_epi8(low, high)};
  }

  // Codes of 16 bytes, scaled: both are exact, and so is their product, in BF16.
  static __m512i from_e2m1(const std::byte* codes, float first_scale, float second_scale) {
    const __m512 first = _mm512_mul_ps(Avx512::from_e2m1(codes), _mm512_set1_ps(first_scale));
    const __m512 second = _mm512_mul_ps(Avx512::from_e2m1(codes + 8), _mm512_set1_ps(second_scale));
    return reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(second, first));
  }

  // Codes that were expanded into memory.
  struct Expanded {
    static constexpr bool kScalesSums = false;
    const X* values;

    explicit Expanded(const X* row) : values(row) {}
    Value at(int64_t k) const { return load(values + k); }
    Value partly(int64_t k, int64_t) const { return load(values + k); }
  };
};

}  // namespace
}  // namespace blockdraft::cpu
