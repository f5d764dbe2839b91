// linear() in terms of a Simd struct (simd_avx512.h). Included between BLOCKDRAFT_TARGET_BEGIN and _END, in one file
// per instruction set: everything is local to it.
//
// A sum over k runs in Simd::kLanes partial sums: lane j takes k = j, j + kLanes, ... in sequence with one rounding a
// step; then the lanes are added in a fixed tree. A weight is expanded in registers for up to kMaxRows rows of x.
#pragma once

namespace blockdraft::cpu {
namespace {

constexpr int64_t kFeatures = 4;       // output features worked on together
constexpr int64_t kRowsOfX = 48;       // of these rows x stays in the second-level cache while features pass
constexpr int64_t kTileFeatures = 32;  // whose weights stay in the second-level cache while rows pass
constexpr int64_t kMaxLanes = 16;

// The codes of one output feature: at(k) are elements [k, k + kLanes) over kUnit, partly(k, count) the same with zeros
// behind the first count.
template <class Simd, auto kFromCodes, int64_t kCodeBytes>
struct PlainCodes {
  static constexpr float kUnit = 1.0f;
  const std::byte* codes;

  PlainCodes(const WeightView& weight, int64_t feature) : codes(weight.row(feature)) {}
  auto at(int64_t k) const { return kFromCodes(codes + k * kCodeBytes); }
  auto partly(int64_t k, int64_t count) const {
    std::byte copy[kMaxLanes * kCodeBytes] = {};
    std::memcpy(copy, codes + k * kCodeBytes, static_cast<size_t>(count * kCodeBytes));
    return kFromCodes(copy);
  }
};

template <class Simd>
struct F8Codes : PlainCodes<Simd, Simd::from_f8, 1> {
  static constexpr float kUnit = Simd::kF8Unit;
  using PlainCodes<Simd, Simd::from_f8, 1>::PlainCodes;
};

template <class Simd>
struct BlockScaledF8Codes {
  static constexpr float kUnit = Simd::kF8Unit;
  F8Codes<Simd> codes;
  const float* scales;

  BlockScaledF8Codes(const WeightView& weight, int64_t feature)
      : codes(weight, feature), scales(weight.block_scales_of(feature)) {}
  auto scale(int64_t k) const { return Simd::broadcast(scales[k / kScaleBlock]); }
  auto at(int64_t k) const { return Simd::multiply(codes.at(k), scale(k)); }
  auto partly(int64_t k, int64_t count) const { return Simd::multiply(codes.partly(k, count), scale(k)); }
};

template <class Simd>
struct Nvfp4Codes {
  static constexpr float kUnit = 1.0f;
  static_assert(kScaleGroup % Simd::kLanes == 0);
  const std::byte* codes;
  const std::byte* group_scales;
  float global_scale;

  Nvfp4Codes(const WeightView& weight, int64_t feature)
      : codes(weight.row(feature)), group_scales(weight.group_scales_of(feature)), global_scale(weight.global_scale) {}
  auto at(int64_t k) const {
    const float scale = float_from_f8_e4m3(load_unaligned<uint8_t>(group_scales + k / kScaleGroup));
    return Simd::multiply(Simd::multiply(Simd::from_e2m1(codes + k / 2), Simd::broadcast(scale)),
                          Simd::broadcast(global_scale));
  }
  auto partly(int64_t, int64_t) const { return Simd::zero(); }  // in_features is a multiple of kScaleGroup
};

template <class Simd>
auto load_partly(const float* address, int64_t count) {
  float copy[kMaxLanes] = {};
  std::memcpy(copy, address, static_cast<size_t>(count) * sizeof(float));
  return Simd::load(copy);
}

// What a finished sum of a feature becomes.
struct Finish {
  float unit;
  const float* row_scales;
  const float* bias;
  bool accumulate;

  void operator()(float* out, __m128 sums, int64_t feature, int64_t count) const {
    alignas(16) float values[kFeatures];
    _mm_store_ps(values, sums);
    for (int64_t n = 0; n < count; ++n) {
      float value = values[n] * unit;
      if (row_scales != nullptr) value *= row_scales[feature + n];
      if (bias != nullptr) value += bias[feature + n];
      out[n] = accumulate ? out[n] + value : value;
    }
  }
};

// kRows rows of x from first_row on with up to kFeatures features from first + n on.
template <class Simd, class Codes, int kRows>
void multiply_block(const LinearArgs& args, const Slice& slice, int64_t n, int64_t first_row) {
  const int64_t count = slice.count - n < kFeatures ? slice.count - n : kFeatures;
  const int64_t feature = slice.first + n;
  // A block with fewer features repeats its last one: the sums are not used, but must not be slow ones.
  const auto codes_of = [&](int64_t i) { return Codes(slice.weight, feature + (i < count ? i : count - 1)); };
  const Codes codes[kFeatures] = {codes_of(0), codes_of(1), codes_of(2), codes_of(3)};
  const float* x = args.x.row(first_row);
  const int64_t x_stride = args.x.row_stride;
  const int64_t in_features = slice.weight.in_features;

  typename Simd::Vec sums[kRows][kFeatures];
  for (int r = 0; r < kRows; ++r) {
    for (int64_t i = 0; i < kFeatures; ++i) sums[r][i] = Simd::zero();
  }
  int64_t k = 0;
  for (; k + Simd::kLanes <= in_features; k += Simd::kLanes) {
    const typename Simd::Vec w[kFeatures] = {codes[0].at(k), codes[1].at(k), codes[2].at(k), codes[3].at(k)};
    for (int r = 0; r < kRows; ++r) {
      const auto value = Simd::load(x + r * x_stride + k);
      for (int64_t i = 0; i < kFeatures; ++i) sums[r][i] = Simd::multiply_add(w[i], value, sums[r][i]);
    }
  }
  if (k < in_features) {
    const int64_t rest = in_features - k;
    for (int r = 0; r < kRows; ++r) {
      const auto value = load_partly<Simd>(x + r * x_stride + k, rest);
      for (int64_t i = 0; i < kFeatures; ++i) {
        sums[r][i] = Simd::multiply_add(codes[i].partly(k, rest), value, sums[r][i]);
      }
    }
  }
  const Finish finish{Codes::kUnit, slice.weight.row_scales, slice.weight.bias, args.accumulate};
  for (int r = 0; r < kRows; ++r) {
    finish(args.out.row(first_row + r) + slice.column + n,
           Simd::sum_lanes(sums[r][0], sums[r][1], sums[r][2], sums[r][3]), feature, count);
  }
}

// multiply_block for a number of rows known at run time, 1 to kRows.
template <class Simd, class Codes, int kRows>
void multiply_rows(const LinearArgs& args, const Slice& slice, int64_t n, int64_t first_row, int64_t rows) {
  if constexpr (kRows > 1) {
    if (rows < kRows) return multiply_rows<Simd, Codes, kRows - 1>(args, slice, n, first_row, rows);
  }
  multiply_block<Simd, Codes, kRows>(args, slice, n, first_row);
}

// Rows [begin, end) of x with up to kFeatures features, in blocks of nearly the same number of rows.
template <class Simd, class Codes>
void multiply_features(const LinearArgs& args, const Slice& slice, int64_t n, int64_t begin, int64_t end) {
  int64_t blocks = (end - begin + Simd::kMaxRows - 1) / Simd::kMaxRows;
  for (int64_t row = begin; row < end; --blocks) {
    const int64_t rows = (end - row + blocks - 1) / blocks;
    multiply_rows<Simd, Codes, Simd::kMaxRows>(args, slice, n, row, rows);
    row += rows;
  }
}

// A few features at a time for all rows, so that their weights come out of memory once.
template <class Simd, class Codes>
void multiply_slice(const LinearArgs& args, const Slice& slice) {
  const int64_t num_rows = args.x.dim(0);
  for (int64_t tile = 0; tile < slice.count; tile += kTileFeatures) {
    const int64_t tile_end = tile + kTileFeatures < slice.count ? tile + kTileFeatures : slice.count;
    for (int64_t begin = 0; begin < num_rows; begin += kRowsOfX) {
      const int64_t end = begin + kRowsOfX < num_rows ? begin + kRowsOfX : num_rows;
      for (int64_t n = tile; n < tile_end; n += kFeatures) multiply_features<Simd, Codes>(args, slice, n, begin, end);
    }
  }
}

template <class Simd>
void multiply(const LinearArgs& args, const Slice& slice) {
  switch (slice.weight.dtype) {
    case DType::f32:
      return multiply_slice<Simd, PlainCodes<Simd, Simd::from_f32, 4>>(args, slice);
    case DType::f16:
      return multiply_slice<Simd, PlainCodes<Simd, Simd::from_f16, 2>>(args, slice);
    case DType::bf16:
      return multiply_slice<Simd, PlainCodes<Simd, Simd::from_bf16, 2>>(args, slice);
    case DType::f8_e4m3:
      if (slice.weight.block_scales != nullptr) return multiply_slice<Simd, BlockScaledF8Codes<Simd>>(args, slice);
      return multiply_slice<Simd, F8Codes<Simd>>(args, slice);
    case DType::u8:
      return multiply_slice<Simd, Nvfp4Codes<Simd>>(args, slice);
    default:
      CHECK(false);
  }
}

}  // namespace
}  // namespace blockdraft::cpu
