// A random weight in a storage format, that owns its bytes.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "tensor/codec.h"
#include "tensor/weight_view.h"

namespace blockdraft::test {

// Each way in which the ops read a weight.
enum class Format { f32, f16, bf16, fp8_row, fp8_block, nvfp4, int8, bf16_packed, fp8_row_packed, fp8_block_packed };
inline constexpr std::array kFormats{Format::f32,       Format::f16,   Format::bf16, Format::fp8_row,
                                     Format::fp8_block, Format::nvfp4, Format::int8};
// Only for products with CpuIsa::avx512_bf16.
inline constexpr std::array kPackedFormats{Format::bf16_packed, Format::fp8_row_packed, Format::fp8_block_packed};

inline const char* name_of(Format format) {
  switch (format) {
    case Format::f32:
      return "F32";
    case Format::f16:
      return "F16";
    case Format::bf16:
      return "BF16";
    case Format::fp8_row:
      return "Fp8ByRow";
    case Format::fp8_block:
      return "Fp8ByBlock";
    case Format::nvfp4:
      return "Nvfp4";
    case Format::int8:
      return "Int8";
    case Format::bf16_packed:
      return "Bf16Packed";
    case Format::fp8_row_packed:
      return "Fp8ByRowPacked";
    case Format::fp8_block_packed:
      return "Fp8ByBlockPacked";
  }
  return "";
}

inline DType dtype_of(Format format) {
  switch (format) {
    case Format::f32:
      return DType::f32;
    case Format::f16:
      return DType::f16;
    case Format::bf16:
    case Format::bf16_packed:
      return DType::bf16;
    case Format::nvfp4:
      return DType::u8;
    case Format::int8:
      return DType::i8;
    default:
      return DType::f8_e4m3;
  }
}

// The least number of columns from `columns` up that the format can have.
inline int64_t columns_for(Format format, int64_t columns) {
  const int64_t group = format == Format::nvfp4 ? kScaleGroup : format == Format::int8 ? kInt8Group : 1;
  return (columns + group - 1) / group * group;
}

// A random finite code of a type, most of them of ordinary size, some subnormal or zero.
inline void put_random_code(std::mt19937& generator, DType dtype, std::byte* address) {
  const auto put = [&](auto code) { std::memcpy(address, &code, sizeof(code)); };
  const auto random = static_cast<uint32_t>(generator());
  const float value = std::normal_distribution<float>()(generator);
  switch (dtype) {
    case DType::f32:
      return put(value);
    case DType::bf16:
      return put(bf16_from_float(random % 64 == 0 ? value * 1e-39f : value));
    case DType::f16: {
      const uint32_t exponent = random % 64 == 0 ? 0 : 10 + (random >> 16) % 8;
      return put(static_cast<uint16_t>((random & 0x83ffu) | exponent << 10));
    }
    case DType::u8:
      return put(static_cast<uint8_t>(random));
    default: {
      const auto code = static_cast<uint8_t>(random);
      return put(static_cast<uint8_t>((code & 0x7f) == 0x7f ? 0 : code));
    }
  }
}

// The number that the code of element k of a row stands for, without any scale.
inline double value_of_code(DType dtype, const std::byte* row, int64_t k) {
  switch (dtype) {
    case DType::f32:
      return static_cast<double>(load_unaligned<float>(row + 4 * k));
    case DType::bf16:
      return static_cast<double>(float_from_bf16(load_unaligned<uint16_t>(row + 2 * k)));
    case DType::f16:
      return static_cast<double>(float_from_f16(load_unaligned<uint16_t>(row + 2 * k)));
    case DType::u8: {
      constexpr double kMagnitudes[] = {0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0};
      const auto byte = load_unaligned<uint8_t>(row + k / 2);
      const int code = k % 2 == 0 ? byte & 15 : byte >> 4;
      return (code & 8) != 0 ? -kMagnitudes[code & 7] : kMagnitudes[code & 7];
    }
    default:
      return static_cast<double>(float_from_f8_e4m3(load_unaligned<uint8_t>(row + k)));
  }
}

class StoredWeight {
 public:
  // The first element lies `misalignment` bytes after an aligned address.
  StoredWeight(std::mt19937& generator, Format format, int64_t out_features, int64_t in_features, bool bias = false,
               size_t misalignment = 0) {
    view_.dtype = dtype_of(format);
    view_.out_features = out_features;
    view_.in_features = in_features;
    bytes_.resize(static_cast<size_t>(view_.size_bytes()) + misalignment);
    view_.data = bytes_.data() + misalignment;
    if (format == Format::int8) put_pack(generator, bytes_.data() + misalignment);
    for (size_t at = misalignment; format != Format::int8 && at < bytes_.size(); at += size_of(view_.dtype)) {
      put_random_code(generator, view_.dtype, bytes_.data() + at);
    }
    std::uniform_real_distribution<float> uniform(0.5f, 2.0f);
    for (int64_t n = 0; n < out_features; ++n) {
      scales_.push_back(uniform(generator) / 64.0f);
      bias_.push_back(uniform(generator) - 1.0f);
    }
    if (bias) view_.bias = bias_.data();
    if (format == Format::fp8_row || format == Format::fp8_row_packed) view_.row_scales = scales_.data();
    if (format == Format::fp8_block || format == Format::fp8_block_packed) add_block_scales(generator);
    if (format == Format::nvfp4) add_group_scales(generator, misalignment);
    rows_ = view_;
    if (std::ranges::find(kPackedFormats, format) != kPackedFormats.end()) pack(misalignment);
  }
  StoredWeight(StoredWeight&&) = default;
  StoredWeight(const StoredWeight&) = delete;
  StoredWeight& operator=(const StoredWeight&) = delete;

  const WeightView& view() const { return view_; }
  std::byte* bytes() { return bytes_.data(); }

  // Row n, with its scales.
  std::vector<double> row(int64_t n) const {
    std::vector<double> values;
    if (view_.dtype == DType::i8) return int8_row(n);
    for (int64_t k = 0; k < view_.in_features; ++k) {
      values.push_back(value_of_code(view_.dtype, rows_.row(n), k) * scale(n, k));
    }
    return values;
  }

 private:
  // Codes of every value, -128 included; scales of ordinary size, some subnormal or zero.
  void put_pack(std::mt19937& generator, std::byte* pack) {
    for (int64_t n = 0; n < view_.out_features; ++n) {
      for (int64_t k = 0; k < view_.in_features; ++k) {
        pack[int8_code_offset(view_.in_features, n, k)] = static_cast<std::byte>(generator());
      }
      for (int64_t g = 0; g < view_.in_features / kInt8Group; ++g) {
        put_random_code(generator, DType::f16, pack + int8_scale_offset(view_.in_features, n, g));
      }
    }
  }

  std::vector<double> int8_row(int64_t n) const {
    std::vector<double> values;
    for (int64_t k = 0; k < view_.in_features; ++k) {
      const int64_t scale = int8_scale_offset(view_.in_features, n, k / kInt8Group);
      const int code = std::to_integer<int>(view_.data[int8_code_offset(view_.in_features, n, k)]) - kInt8Offset;
      values.push_back(code * static_cast<double>(float_from_f16(load_unaligned<uint16_t>(view_.data + scale))));
    }
    return values;
  }

  void pack(size_t misalignment) {
    const auto element = static_cast<int64_t>(size_of(view_.dtype));
    packs_.resize(static_cast<size_t>(dword_packs_bytes(view_.dtype, view_.out_features, view_.in_features)) +
                  misalignment);
    view_.data = packs_.data() + misalignment;
    view_.is_packed = true;
    for (int64_t n = 0; n < view_.out_features; ++n) {
      for (int64_t k = 0; k < view_.in_features; ++k) {
        std::memcpy(packs_.data() + misalignment + dword_code_offset(view_.dtype, view_.in_features, n, k),
                    rows_.row(n) + k * element, static_cast<size_t>(element));
      }
    }
  }

  void add_block_scales(std::mt19937& generator) {
    std::uniform_real_distribution<float> uniform(0.5f, 2.0f);
    scales_.clear();
    const int64_t rows = (view_.out_features + 127) / 128;
    for (int64_t i = 0; i < rows * ((view_.in_features + 127) / 128); ++i) {
      scales_.push_back(uniform(generator) / 64.0f);
    }
    view_.block_scales = scales_.data();
  }

  void add_group_scales(std::mt19937& generator, size_t misalignment) {
    group_scales_.resize(static_cast<size_t>(view_.out_features * view_.in_features / 16) + misalignment);
    for (size_t at = misalignment; at < group_scales_.size(); ++at) {
      put_random_code(generator, DType::f8_e4m3, &group_scales_[at]);
    }
    view_.group_scales = group_scales_.data() + misalignment;
    view_.global_scale = std::uniform_real_distribution<float>(0.5f, 2.0f)(generator) / 256.0f;
  }

  double scale(int64_t n, int64_t k) const {
    if (view_.row_scales != nullptr) return static_cast<double>(scales_[static_cast<size_t>(n)]);
    if (view_.block_scales != nullptr) {
      return static_cast<double>(scales_[static_cast<size_t>(n / 128 * ((view_.in_features + 127) / 128) + k / 128)]);
    }
    if (view_.group_scales != nullptr) {
      return value_of_code(DType::f8_e4m3, view_.group_scales, n * (view_.in_features / 16) + k / 16) *
             static_cast<double>(view_.global_scale);
    }
    return 1.0;
  }

  std::vector<std::byte> bytes_;
  std::vector<std::byte> packs_;
  std::vector<std::byte> group_scales_;
  std::vector<float> scales_;
  std::vector<float> bias_;
  WeightView rows_;  // as view_, by rows
  WeightView view_;
};

}  // namespace blockdraft::test
