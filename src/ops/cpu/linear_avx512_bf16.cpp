#if defined(__x86_64__)

#include <array>
#include <cstring>
#include <type_traits>

#include <immintrin.h>

#include "base/check.h"
#include "base/target_options.h"
#include "ops/cpu/linear_slice.h"
#include "tensor/codec.h"

namespace blockdraft::cpu {
namespace {

// float32 of every E4M3 code, for scales.
constexpr std::array<float, 256> kF8Values = [] {
  std::array<float, 256> values{};
  for (unsigned code = 0; code < 256; ++code) values[code] = float_from_f8_e4m3(static_cast<uint8_t>(code));
  return values;
}();

}  // namespace
}  // namespace blockdraft::cpu

BLOCKDRAFT_TARGET_BEGIN("avx512bf16,avx512vbmi,avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")
#include "ops/cpu/f8_bytes.h"
#include "ops/cpu/linear_kernel.h"
#include "ops/cpu/simd_avx512.h"
#include "ops/cpu/simd_avx512_bf16.h"

namespace blockdraft::cpu {
namespace {

using Bf16Codes = PlainCodes<Avx512Bf16, Avx512Bf16::from_bf16, 2>;

struct F8ToBf16 : F8Codes<Avx512Bf16> {
  static constexpr bool kIsCostly = true;
  using F8Codes<Avx512Bf16>::F8Codes;
};

// The scale of a block does not fit into the eight bits of a BF16 beside the code: it goes to the sums.
struct BlockScaledF8ToBf16 : F8Codes<Avx512Bf16> {
  static constexpr bool kScalesSums = true;
  const float* scales;

  BlockScaledF8ToBf16(const WeightView& weight, int64_t feature)
      : F8Codes<Avx512Bf16>(weight, feature), scales(weight.block_scales_of(feature)) {}
  float scale(int64_t k) const { return scales[k / kScaleBlock]; }
};

// Nor does the global scale.
struct Nvfp4ToBf16 {
  static constexpr bool kScalesSums = false;
  static constexpr bool kIsCostly = true;
  const std::byte* codes;
  const std::byte* group_scales;
  float global_scale;

  Nvfp4ToBf16(const WeightView& weight, int64_t feature)
      : codes(weight.row(feature)), group_scales(weight.group_scales_of(feature)), global_scale(weight.global_scale) {}
  float unit() const { return global_scale; }
  Avx512Bf16::Value at(int64_t k) const { return scaled(codes + k / 2, group_scales + k / kScaleGroup); }
  Avx512Bf16::Value partly(int64_t k, int64_t count) const {
    std::byte some_codes[kBf16Step / 2] = {};
    std::byte some_scales[kBf16Step / kScaleGroup] = {};
    std::memcpy(some_codes, codes + k / 2, static_cast<size_t>(count / 2));
    std::memcpy(some_scales, group_scales + k / kScaleGroup, static_cast<size_t>(count / kScaleGroup));
    return scaled(some_codes, some_scales);
  }

 private:
  static Avx512Bf16::Value scaled(const std::byte* step, const std::byte* scales) {
    const auto scale = [scales](int group) { return kF8Values[std::to_integer<size_t>(scales[group])]; };
    return {Avx512Bf16::from_e2m1(step, scale(0), scale(1)), Avx512Bf16::from_e2m1(step + 16, scale(2), scale(3))};
  }
};

}  // namespace

void multiply_avx512_bf16(const LinearTask& task, const Slice& slice) {
  switch (slice.weight.dtype) {
    case DType::bf16:
      return multiply_slice<Avx512Bf16, Bf16Codes>(task, slice);
    case DType::f8_e4m3:
      if (slice.weight.block_scales != nullptr) return multiply_slice<Avx512Bf16, BlockScaledF8ToBf16>(task, slice);
      return multiply_slice<Avx512Bf16, F8ToBf16>(task, slice);
    case DType::u8:
      return multiply_slice<Avx512Bf16, Nvfp4ToBf16>(task, slice);
    default:
      CHECK(false);
  }
}

void round_avx512_bf16(const float* values, int64_t count, uint16_t* bf16, int64_t padded) {
  for (int64_t k = 0; k < padded; k += 16) {
    const int64_t rest = count - k < 0 ? 0 : count - k;
    const auto mask = static_cast<__mmask16>(rest < 16 ? (1u << rest) - 1 : 0xffffu);
    const __m256bh rounded = _mm512_cvtneps_pbh(_mm512_maskz_loadu_ps(mask, values + k));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(bf16 + k), reinterpret_cast<__m256i>(rounded));
  }
}

}  // namespace blockdraft::cpu
BLOCKDRAFT_TARGET_END

#endif
