// E4M3 as BF16, a byte at a time: from tables of what its 128 magnitudes are, since vpermi2b looks at the low seven
// bits. See simd_avx512.h; tensor/codec.h comes before.
#pragma once

namespace blockdraft::cpu {
namespace {

// Byte `shift` / 8 of E4M3's magnitudes as BF16.
constexpr std::array<uint8_t, 128> bytes_of_f8(int shift) {
  std::array<uint8_t, 128> bytes{};
  for (unsigned code = 0; code < 128; ++code) {
    const float value = float_from_f8_e4m3(static_cast<uint8_t>(code));
    bytes[code] = static_cast<uint8_t>(bits_as<uint32_t>(value) >> (16 + shift));
  }
  return bytes;
}
alignas(64) constexpr std::array<uint8_t, 128> kF8HighBytes = bytes_of_f8(8);
alignas(64) constexpr std::array<uint8_t, 128> kF8LowBytes = bytes_of_f8(0);

inline __m512i f8_look_up(const std::array<uint8_t, 128>& table, __m512i codes) {
  return _mm512_permutex2var_epi8(_mm512_load_si512(table.data()), codes, _mm512_load_si512(table.data() + 64));
}
inline __m512i f8_low_bytes(__m512i codes) { return f8_look_up(kF8LowBytes, codes); }
inline __m512i f8_high_bytes(__m512i codes) {
  const __m512i sign = _mm512_set1_epi8(static_cast<char>(0x80));
  constexpr int kAOrBAndC = 0xf8;
  return _mm512_ternarylogic_epi64(f8_look_up(kF8HighBytes, codes), codes, sign, kAOrBAndC);
}

}  // namespace
}  // namespace blockdraft::cpu
