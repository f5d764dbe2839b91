#include "nn/quantize.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/check.h"
#include "nn/row_tasks.h"
#include "tensor/codec.h"

namespace blockdraft {
namespace {

constexpr float kLargestE4m3 = 448.0f;
constexpr float kLargestE2m1 = 6.0f;
constexpr auto kGroup = static_cast<size_t>(kScaleGroup);

void quantize_group(std::span<const float> group, float divisor, std::span<uint8_t> packed, uint8_t& scale_code) {
  scale_code = f8_e4m3_from_float(largest_magnitude(group) / kLargestE2m1 * divisor);
  const float scale = float_from_f8_e4m3(scale_code);
  const auto code = [&](float value) { return scale == 0.0f ? 0 : e2m1_from_float(value * divisor / scale); };
  for (size_t b = 0; b < packed.size(); ++b) {
    packed[b] = static_cast<uint8_t>(code(group[2 * b]) | code(group[2 * b + 1]) << 4);
  }
}

std::span<uint8_t> row_of(std::vector<uint8_t>& rows, size_t index, size_t length) {
  return std::span<uint8_t>(rows).subspan(index * length, length);
}

}  // namespace

float largest_magnitude(std::span<const float> values) {
  float largest = 0.0f;
  for (const float value : values) largest = std::max(largest, std::abs(value));
  return largest;
}

float fp8_row_scale(std::span<const float> row) {
  const float scale = largest_magnitude(row) * (1.0f / kLargestE4m3);
  return scale == 0.0f ? 1.0f : scale;
}

void quantize_row_fp8(std::span<const float> row, float scale, std::span<uint8_t> codes) {
  CHECK(codes.size() == row.size());
  for (size_t k = 0; k < row.size(); ++k) codes[k] = f8_e4m3_from_float(row[k] / scale);
}

float nvfp4_divisor(float largest) {
  return largest == 0.0f ? 1.0f : std::min(kLargestE4m3 * kLargestE2m1 / largest, 0x1p126f);
}

void quantize_row_nvfp4(std::span<const float> row, float divisor, std::span<uint8_t> packed,
                        std::span<uint8_t> group_scales) {
  CHECK(row.size() % kGroup == 0 && packed.size() == row.size() / 2 && group_scales.size() == row.size() / kGroup);
  for (size_t g = 0; g < group_scales.size(); ++g) {
    quantize_group(row.subspan(g * kGroup, kGroup), divisor, packed.subspan(g * kGroup / 2, kGroup / 2),
                   group_scales[g]);
  }
}

bool is_quantizable(std::string_view name) {
  const bool linear = name.ends_with("_proj.weight") || name == "fc.weight" || name.ends_with(".fc.weight");
  return linear && name.find("_head.") == std::string_view::npos;
}

QuantizedMatrix round_to_bf16(const WeightView& weight, ThreadPool* threads) {
  const size_t row_bytes = static_cast<size_t>(weight.in_features) * sizeof(uint16_t);
  QuantizedMatrix result;
  result.codes.resize(static_cast<size_t>(weight.out_features) * row_bytes);
  for_each_row(threads, weight, [&](size_t n, std::span<const float> row) {
    uint8_t* code = result.codes.data() + n * row_bytes;
    for (const float value : row) {
      const uint16_t bits = bf16_from_float(value);
      std::memcpy(code, &bits, sizeof bits);
      code += sizeof bits;
    }
  });
  result.view = {.data = reinterpret_cast<const std::byte*>(result.codes.data()),
                 .dtype = DType::bf16,
                 .out_features = weight.out_features,
                 .in_features = weight.in_features};
  return result;
}

QuantizedMatrix quantize_fp8(const WeightView& weight, ThreadPool* threads) {
  const auto columns = static_cast<size_t>(weight.in_features);
  QuantizedMatrix result;
  result.codes.resize(static_cast<size_t>(weight.out_features) * columns);
  result.row_scales.resize(static_cast<size_t>(weight.out_features));
  for_each_row(threads, weight, [&](size_t n, std::span<const float> row) {
    result.row_scales[n] = fp8_row_scale(row);
    quantize_row_fp8(row, result.row_scales[n], row_of(result.codes, n, columns));
  });
  result.view = {.data = reinterpret_cast<const std::byte*>(result.codes.data()),
                 .dtype = DType::f8_e4m3,
                 .out_features = weight.out_features,
                 .in_features = weight.in_features,
                 .row_scales = result.row_scales.data()};
  return result;
}

QuantizedMatrix quantize_nvfp4(const WeightView& weight, ThreadPool* threads) {
  const auto columns = static_cast<size_t>(weight.in_features);
  std::vector<float> largest(static_cast<size_t>(weight.out_features));
  for_each_row(threads, weight, [&](size_t n, std::span<const float> row) { largest[n] = largest_magnitude(row); });
  const float divisor = nvfp4_divisor(largest_magnitude(largest));
  QuantizedMatrix result;
  result.codes.resize(static_cast<size_t>(weight.out_features) * columns / 2);
  result.group_scales.resize(static_cast<size_t>(weight.out_features) * columns / kGroup);
  for_each_row(threads, weight, [&](size_t n, std::span<const float> row) {
    quantize_row_nvfp4(row, divisor, row_of(result.codes, n, columns / 2),
                       row_of(result.group_scales, n, columns / kGroup));
  });
  result.view = {.data = reinterpret_cast<const std::byte*>(result.codes.data()),
                 .dtype = DType::u8,
                 .out_features = weight.out_features,
                 .in_features = weight.in_features,
                 .group_scales = reinterpret_cast<const std::byte*>(result.group_scales.data()),
                 .global_scale = 1.0f / divisor};
  return result;
}

}  // namespace blockdraft
