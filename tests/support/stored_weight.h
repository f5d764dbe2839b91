// A random weight in a storage type, that owns its bytes.
#pragma once

#include <cmath>
#include <random>
#include <vector>

#include "tensor/codec.h"
#include "tensor/weight_view.h"

namespace blockdraft::test {

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
    default: {
      const auto code = static_cast<uint8_t>(random);
      return put(static_cast<uint8_t>((code & 0x7f) == 0x7f ? 0 : code));
    }
  }
}

inline double value_of_code(DType dtype, const std::byte* address) {
  switch (dtype) {
    case DType::f32:
      return static_cast<double>(load_unaligned<float>(address));
    case DType::bf16:
      return static_cast<double>(float_from_bf16(load_unaligned<uint16_t>(address)));
    case DType::f16:
      return static_cast<double>(float_from_f16(load_unaligned<uint16_t>(address)));
    default:
      return static_cast<double>(float_from_f8_e4m3(load_unaligned<uint8_t>(address)));
  }
}

class StoredWeight {
 public:
  // The first element lies `misalignment` bytes after an aligned address.
  StoredWeight(std::mt19937& generator, DType dtype, int64_t out_features, int64_t in_features, bool bias = false,
               size_t misalignment = 0) {
    const size_t element = size_of(dtype);
    bytes_.resize(static_cast<size_t>(out_features * in_features) * element + misalignment);
    view_ = {bytes_.data() + misalignment, dtype, out_features, in_features};
    for (size_t at = misalignment; at < bytes_.size(); at += element) {
      put_random_code(generator, dtype, bytes_.data() + at);
    }
    std::uniform_real_distribution<float> uniform(0.5f, 2.0f);
    for (int64_t n = 0; n < out_features; ++n) {
      scales_.push_back(uniform(generator) / 64.0f);
      bias_.push_back(uniform(generator) - 1.0f);
    }
    if (dtype == DType::f8_e4m3) view_.row_scales = scales_.data();
    if (bias) view_.bias = bias_.data();
  }
  StoredWeight(StoredWeight&&) = default;
  StoredWeight(const StoredWeight&) = delete;
  StoredWeight& operator=(const StoredWeight&) = delete;

  const WeightView& view() const { return view_; }
  std::byte* bytes() { return bytes_.data(); }

  // Row n, with its scale.
  std::vector<double> row(int64_t n) const {
    std::vector<double> values;
    const double scale = view_.row_scales == nullptr ? 1.0 : static_cast<double>(view_.row_scales[n]);
    for (int64_t k = 0; k < view_.in_features; ++k) {
      const std::byte* code = view_.row(n) + static_cast<size_t>(k) * size_of(view_.dtype);
      values.push_back(value_of_code(view_.dtype, code) * scale);
    }
    return values;
  }

 private:
  std::vector<std::byte> bytes_;
  std::vector<float> scales_;
  std::vector<float> bias_;
  WeightView view_;
};

}  // namespace blockdraft::test
