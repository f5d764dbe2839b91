// linear() with activations in float32. Included after linear_kernel.h and the Simd struct, in the same way.
#pragma once

namespace blockdraft::cpu {
namespace {

template <class Simd>
struct BlockScaledF8Codes {
  static constexpr bool kScalesSums = false;
  static constexpr bool kIsCostly = false;
  F8Codes<Simd> codes;
  const float* scales;

  BlockScaledF8Codes(const WeightView& weight, int64_t feature)
      : codes(weight, feature), scales(weight.block_scales_of(feature)) {}
  static float unit() { return Simd::kF8Unit; }
  auto scale(int64_t k) const { return Simd::broadcast(scales[k / kScaleBlock]); }
  auto at(int64_t k) const { return Simd::multiply(codes.at(k), scale(k)); }
  auto partly(int64_t k, int64_t count) const { return Simd::multiply(codes.partly(k, count), scale(k)); }
};

template <class Simd>
struct Nvfp4Codes {
  static constexpr bool kScalesSums = false;
  static constexpr bool kIsCostly = false;
  static_assert(kScaleGroup % Simd::kStep == 0);
  const std::byte* codes;
  const std::byte* group_scales;
  float global_scale;

  Nvfp4Codes(const WeightView& weight, int64_t feature)
      : codes(weight.row(feature)), group_scales(weight.group_scales_of(feature)), global_scale(weight.global_scale) {}
  static float unit() { return 1.0f; }
  auto at(int64_t k) const {
    const float scale = float_from_f8_e4m3(load_unaligned<uint8_t>(group_scales + k / kScaleGroup));
    return Simd::multiply(Simd::multiply(Simd::from_e2m1(codes + k / 2), Simd::broadcast(scale)),
                          Simd::broadcast(global_scale));
  }
  auto partly(int64_t, int64_t) const { return Simd::zero(); }  // in_features is a multiple of kScaleGroup
};

template <class Simd>
void multiply_float(const LinearTask& task, const Slice& slice) {
  switch (slice.weight.dtype) {
    case DType::f32:
      return multiply_slice<Simd, PlainCodes<Simd, Simd::from_f32, 4>>(task, slice);
    case DType::f16:
      return multiply_slice<Simd, PlainCodes<Simd, Simd::from_f16, 2>>(task, slice);
    case DType::bf16:
      return multiply_slice<Simd, PlainCodes<Simd, Simd::from_bf16, 2>>(task, slice);
    case DType::f8_e4m3:
      if (slice.weight.block_scales != nullptr) return multiply_slice<Simd, BlockScaledF8Codes<Simd>>(task, slice);
      return multiply_slice<Simd, F8Codes<Simd>>(task, slice);
    case DType::u8:
      return multiply_slice<Simd, Nvfp4Codes<Simd>>(task, slice);
    default:
      CHECK(false);
  }
}

}  // namespace
}  // namespace blockdraft::cpu
