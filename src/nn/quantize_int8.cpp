#include "nn/quantize_int8.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/check.h"
#include "base/error.h"
#include "nn/row_tasks.h"
#include "nn/weight_packs.h"
#include "tensor/codec.h"
#include "tensor/int8_pack.h"

namespace blockdraft {
namespace {

constexpr auto kGroup = static_cast<size_t>(kInt8Group);
constexpr float kLargestCode = 127.0f;

// 1.5 * 2^23 has a spacing of 1 around it: the sum rounds to nearest even, and its low bits are the code.
int8_t code_of(float value, float scale) {
  const float quotient = std::clamp(value / scale, -kLargestCode, kLargestCode);
  return static_cast<int8_t>(bits_as<int32_t>(quotient + 0x1.8p23f) - bits_as<int32_t>(0x1.8p23f));
}

Result<QuantizedMatrix> empty_matrix(int64_t out_features, int64_t in_features) {
  CHECK(in_features % kInt8Group == 0);
  QuantizedMatrix matrix;
  BLOCKDRAFT_ASSIGN(matrix.pack,
                    allocate_packs(static_cast<size_t>(int8_bytes(out_features, in_features)), "an int8 weight"));
  matrix.view = {.data = static_cast<const std::byte*>(matrix.pack.data()),
                 .dtype = DType::i8,
                 .out_features = out_features,
                 .in_features = in_features};
  return matrix;
}

// Puts rows of one weight into its packs.
class Packer {
 public:
  explicit Packer(QuantizedMatrix& matrix)
      : bytes_(static_cast<std::byte*>(matrix.pack.data())), in_features_(matrix.view.in_features) {}

  // codes: in_features bytes; scales: in_features / 32 F16 codes.
  void put(int64_t feature, const void* codes, const void* scales) const {
    std::byte* to = bytes_ + int8_code_offset(in_features_, feature, 0);
    const auto* from = static_cast<const std::byte*>(codes);
    for (int64_t k = 0; k < in_features_; k += 4) {
      uint32_t four;
      std::memcpy(&four, from + k, sizeof(four));
      four ^= 0x80808080u;  // code + kInt8Offset
      std::memcpy(to + k / 4 * 64, &four, sizeof(four));
    }
    for (int64_t g = 0; g < in_features_ / kInt8Group; ++g) {
      std::memcpy(bytes_ + int8_scale_offset(in_features_, feature, g), static_cast<const std::byte*>(scales) + 2 * g,
                  2);
    }
  }

 private:
  std::byte* bytes_;
  int64_t in_features_;
};

}  // namespace

void quantize_row_int8(std::span<const float> row, std::span<int8_t> codes, std::span<uint16_t> scales) {
  CHECK(row.size() % kGroup == 0 && codes.size() == row.size() && scales.size() == row.size() / kGroup);
  for (size_t g = 0; g < scales.size(); ++g) {
    const std::span<const float> group = row.subspan(g * kGroup, kGroup);
    scales[g] = f16_from_float(largest_magnitude(group) / kLargestCode);
    const float scale = float_from_f16(scales[g]);
    int8_t* code = codes.data() + g * kGroup;
    if (scale == 0.0f) {
      std::fill_n(code, kGroup, int8_t{0});
    } else {
      for (size_t k = 0; k < kGroup; ++k) code[k] = code_of(group[k], scale);
    }
  }
}

Result<QuantizedMatrix> quantize_int8(const WeightView& weight, ThreadPool* threads) {
  BLOCKDRAFT_ASSIGN(QuantizedMatrix matrix, empty_matrix(weight.out_features, weight.in_features));
  const Packer packer(matrix);
  for_each_row(threads, weight, [&](size_t n, std::span<const float> row) {
    std::vector<int8_t> codes(row.size());
    std::vector<uint16_t> scales(row.size() / kGroup);
    quantize_row_int8(row, codes, scales);
    packer.put(static_cast<int64_t>(n), codes.data(), scales.data());
  });
  return matrix;
}

Result<QuantizedMatrix> pack_int8(const std::byte* codes, const std::byte* scales, int64_t out_features,
                                  int64_t in_features, ThreadPool* threads) {
  BLOCKDRAFT_ASSIGN(QuantizedMatrix matrix, empty_matrix(out_features, in_features));
  const Packer packer(matrix);
  for_each_task(threads, num_packs(out_features), [&](int64_t pack) {
    const int64_t end = std::min(out_features, (pack + 1) * kPackFeatures);
    for (int64_t n = pack * kPackFeatures; n < end; ++n) {
      packer.put(n, codes + n * in_features, scales + n * (in_features / kInt8Group) * 2);
    }
  });
  return matrix;
}

}  // namespace blockdraft
