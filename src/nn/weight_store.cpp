#include "nn/weight_store.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <span>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "base/unwatched.h"
#include "nn/quantize_int8.h"
#include "nn/row_tasks.h"
#include "nn/weight_packs.h"
#include "tensor/codec.h"

namespace blockdraft {
namespace {

// Does not branch, so that it compiles to vector operations: every FP8 weight passes here.
BLOCKDRAFT_UNWATCHED bool has_nan_code(std::span<const std::byte> codes) {
  uint8_t found = 0;
  for (const std::byte code : codes) found |= static_cast<uint8_t>((std::to_integer<uint8_t>(code) & 0x7f) == 0x7f);
  return found != 0;
}

bool has_nan_code(const StoredTensor& tensor, ThreadPool* threads) {
  constexpr size_t kBlock = 1 << 18;
  const std::span bytes(tensor.data, tensor.size_bytes);
  std::atomic<bool> found{false};
  for_each_task(threads, static_cast<int64_t>((bytes.size() + kBlock - 1) / kBlock), [&](int64_t block) {
    const size_t first = static_cast<size_t>(block) * kBlock;
    if (has_nan_code(bytes.subspan(first, std::min(kBlock, bytes.size() - first)))) found = true;
  });
  return found;
}

float element(const StoredTensor& tensor, size_t index) {
  const std::byte* address = tensor.data + index * size_of(tensor.dtype);
  switch (tensor.dtype) {
    case DType::bf16:
      return float_from_bf16(load_unaligned<uint16_t>(address));
    case DType::f16:
      return float_from_f16(load_unaligned<uint16_t>(address));
    default:
      return load_unaligned<float>(address);
  }
}

bool all_finite(const WeightView& weight, ThreadPool* threads) {
  std::atomic<bool> finite{true};
  for_each_row(threads, weight, [&](size_t, std::span<const float> row) {
    if (!std::ranges::all_of(row, [](float value) { return std::isfinite(value); })) finite = false;
  });
  return finite;
}

bool has_finite_codes_f16(const StoredTensor& tensor) {
  for (size_t at = 0; at < tensor.size_bytes; at += sizeof(uint16_t)) {
    if ((load_unaligned<uint16_t>(tensor.data + at) & 0x7c00u) == 0x7c00u) return false;
  }
  return true;
}

LoadFormat format_of(DType dtype) {
  switch (dtype) {
    case DType::bf16:
      return LoadFormat::bf16;
    case DType::f8_e4m3:
      return LoadFormat::fp8;
    case DType::u8:
      return LoadFormat::nvfp4;
    case DType::i8:
      return LoadFormat::int8;
    default:
      return LoadFormat::stored;
  }
}

bool is_plain_float(DType dtype) { return dtype == DType::f32 || dtype == DType::bf16 || dtype == DType::f16; }

}  // namespace

WeightStore::WeightStore(std::shared_ptr<const Checkpoint> checkpoint, std::string prefix, WeightValues values)
    : checkpoint_(std::move(checkpoint)), prefix_(std::move(prefix)), values_(values) {
  CHECK(values == WeightValues::unread || checkpoint_->has_data());
}

bool WeightStore::has(std::string_view name) const { return checkpoint_->find(full_name(name)) != nullptr; }

bool WeightStore::has_matrix(std::string_view name) const {
  return has_weight(*checkpoint_, full_name(name) + ".weight");
}

Result<ConstTensorView> WeightStore::vector(std::string_view name, int64_t dim) {
  BLOCKDRAFT_TRY(checkpoint_->provide(full_name(name), Shape{dim}));
  BLOCKDRAFT_ASSIGN(const float* values, floats(full_name(name), dim));
  note_plain(full_name(name));
  return view_f32(values, Shape{dim});
}

void WeightStore::note_plain(const std::string& name) {
  const StoredTensor& tensor = *checkpoint_->find(name);
  stored_.push_back({.name = name.substr(prefix_.size()),
                     .format = name_of(tensor.dtype),
                     .parameters = tensor.num_elements(),
                     .size_bytes = static_cast<int64_t>(tensor.size_bytes)});
}

Status WeightStore::note_matrix(const std::string& name, int64_t out_features, int64_t in_features) {
  BLOCKDRAFT_ASSIGN(const WeightTensors tensors, find_weight(*checkpoint_, name));
  StoredWeight weight{.name = name.substr(prefix_.size()),
                      .format = describe(*checkpoint_, tensors),
                      .parameters = out_features * in_features};
  if (tensors.scheme == WeightScheme::fp8) {
    BLOCKDRAFT_ASSIGN(const Fp8Scales scales, fp8_scales(*checkpoint_, tensors.scale, out_features, in_features));
    weight.format += fmt::format(", {}", name_of(scales));
  }
  for (const std::string& tensor : tensors_of(*checkpoint_, name)) {
    weight.size_bytes += static_cast<int64_t>(checkpoint_->find(tensor)->size_bytes);
  }
  stored_.push_back(std::move(weight));
  return {};
}

// Any shape with the right number of elements: a scale is [out], [out, 1] or, for one row, a scalar. null if values are
// not read.
Result<const float*> WeightStore::floats(const std::string& name, int64_t count) {
  BLOCKDRAFT_ASSIGN(const StoredTensor* tensor, checkpoint_->require(name));
  used_.insert(name);
  if (!is_plain_float(tensor->dtype)) {
    return make_error(Code::unsupported, "{}: tensor '{}' has type {}, expected F32, BF16 or F16",
                      checkpoint_->file_of(name), name, name_of(tensor->dtype));
  }
  if (tensor->num_elements() != count) {
    return make_error(Code::mismatch, "{}: tensor '{}' has shape {}, expected {} elements", checkpoint_->file_of(name),
                      name, to_string(tensor->shape), count);
  }
  if (!reads_values()) return static_cast<const float*>(nullptr);
  std::vector<float>& values = owned_.emplace_back(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) values[i] = element(*tensor, i);
  if (!std::ranges::all_of(values, [](float value) { return std::isfinite(value); })) {
    return make_error(Code::corrupt_file, "{}: tensor '{}' holds a value that is not finite",
                      checkpoint_->file_of(name), name);
  }
  return values.data();
}

Result<WeightView> WeightStore::matrix(std::string_view name, int64_t out_features, int64_t in_features,
                                       bool with_bias) {
  const std::string weight_name = full_name(name) + ".weight";
  BLOCKDRAFT_TRY(checkpoint_->provide(weight_name, Shape{out_features, in_features}));
  BLOCKDRAFT_ASSIGN(WeightView view, stored_matrix(weight_name, out_features, in_features));
  BLOCKDRAFT_TRY(note_matrix(weight_name, out_features, in_features));
  if (with_bias) {
    BLOCKDRAFT_TRY(checkpoint_->provide(full_name(name) + ".bias", Shape{out_features}));
    BLOCKDRAFT_ASSIGN(view.bias, floats(full_name(name) + ".bias", out_features));
    note_plain(full_name(name) + ".bias");
  }
  return view;
}

Result<WeightView> WeightStore::parameter(std::string_view name, int64_t out_features, int64_t in_features) {
  BLOCKDRAFT_TRY(checkpoint_->provide(full_name(name), Shape{out_features, in_features}));
  BLOCKDRAFT_ASSIGN(const WeightView view, stored_matrix(full_name(name), out_features, in_features));
  BLOCKDRAFT_TRY(note_matrix(full_name(name), out_features, in_features));
  return view;
}

Result<ConstTensorView> WeightStore::tensor(std::string_view name, const Shape& shape) {
  BLOCKDRAFT_TRY(checkpoint_->provide(full_name(name), shape));
  BLOCKDRAFT_TRY(checkpoint_->require(full_name(name), shape));
  BLOCKDRAFT_ASSIGN(const float* values, floats(full_name(name), shape.num_elements()));
  note_plain(full_name(name));
  return view_f32(values, shape);
}

Result<WeightView> WeightStore::stored_matrix(const std::string& name, int64_t out_features, int64_t in_features) {
  BLOCKDRAFT_ASSIGN(const WeightTensors tensors, find_weight(*checkpoint_, name));
  for (const std::string& ignored : tensors.ignored) used_.insert(ignored);
  BLOCKDRAFT_ASSIGN(const WeightView weight, view_of(tensors, out_features, in_features));
  if (!is_quantizable(name)) return weight;
  if (!is_to_convert(weight)) return packed(weight);
  BLOCKDRAFT_ASSIGN(const WeightView result, converted(tensors.codes, weight));
  if (weight.dtype == DType::i8) drop(weight);
  return packed(result);
}

bool WeightStore::is_to_convert(const WeightView& weight) const {
  return loading_.format != LoadFormat::stored && format_of(weight.dtype) != loading_.format;
}

Result<WeightView> WeightStore::as_loaded(std::string_view name, const WeightView& weight) {
  if (!is_to_convert(weight)) return packed(weight);
  BLOCKDRAFT_ASSIGN(const WeightTensors tensors, find_weight(*checkpoint_, full_name(name) + ".weight"));
  BLOCKDRAFT_ASSIGN(const WeightView result, converted(tensors.codes, weight));
  return packed(result);
}

// Codes that were converted before are replaced; those in a file stay there, whoever else uses them.
Result<WeightView> WeightStore::packed(const WeightView& weight) {
  if (!wants_packs(loading_.isa, weight)) return weight;
  WeightView view = weight;
  view.is_packed = true;
  if (!reads_values()) {
    converted_bytes_ += static_cast<size_t>(dword_packs_bytes(weight.dtype, weight.out_features, weight.in_features));
    return view;
  }
  BLOCKDRAFT_ASSIGN(Buffer packs, pack_dwords(weight, loading_.threads));
  view.data = static_cast<const std::byte*>(packs.data());
  const auto matrix = find_converted(weight);
  if (matrix == converted_.end()) {
    checkpoint_->expect_no_reads(weight.data, static_cast<size_t>(weight.row_bytes() * weight.out_features));
    return keep({.view = view, .pack = std::move(packs)});
  }
  converted_bytes_ -= matrix->size_bytes();
  matrix->codes = {};
  matrix->pack = std::move(packs);
  matrix->view = view;
  converted_bytes_ += matrix->size_bytes();
  return view;
}

Result<WeightView> WeightStore::view_of(const WeightTensors& tensors, int64_t out_features, int64_t in_features) {
  if (tensors.scheme == WeightScheme::fp8) return fp8_matrix(tensors, out_features, in_features);
  if (tensors.scheme == WeightScheme::nvfp4) return nvfp4_matrix(tensors, out_features, in_features);
  if (tensors.scheme == WeightScheme::int8) return int8_matrix(tensors, out_features, in_features);
  BLOCKDRAFT_ASSIGN(const StoredTensor* tensor, checkpoint_->require(tensors.codes, Shape{out_features, in_features}));
  used_.insert(tensors.codes);
  return WeightView{tensor->data, tensor->dtype, out_features, in_features};
}

Result<WeightView> WeightStore::converted(const std::string& name, const WeightView& weight) {
  if (!all_finite(weight, loading_.threads)) {
    return make_error(Code::numeric, "{}: tensor '{}' holds a value that is not finite", checkpoint_->file_of(name),
                      name);
  }
  BLOCKDRAFT_ASSIGN(QuantizedMatrix matrix, convert(name, weight));
  if (loading_.format == LoadFormat::bf16 && !all_finite(matrix.view, loading_.threads)) {
    return make_error(Code::numeric, "{}: tensor '{}' holds a value too large for BF16", checkpoint_->file_of(name),
                      name);
  }
  return keep(std::move(matrix));
}

Result<QuantizedMatrix> WeightStore::convert(const std::string& name, const WeightView& weight) const {
  switch (loading_.format) {
    case LoadFormat::stored:
      break;
    case LoadFormat::bf16:
      return round_to_bf16(weight, loading_.threads);
    case LoadFormat::fp8:
      return quantize_fp8(weight, loading_.threads);
    case LoadFormat::nvfp4:
      BLOCKDRAFT_TRY(expect_groups(name, weight.in_features, kScaleGroup, "NVFP4"));
      return quantize_nvfp4(weight, loading_.threads);
    case LoadFormat::int8:
      BLOCKDRAFT_TRY(expect_groups(name, weight.in_features, kInt8Group, "int8"));
      return quantize_int8(weight, loading_.threads);
  }
  CHECK(!"a format to convert to");
}

Status WeightStore::expect_groups(const std::string& name, int64_t in_features, int64_t group,
                                  const char* format) const {
  if (in_features % group == 0) return {};
  return make_error(Code::unsupported, "{}: tensor '{}' has rows of {} elements, expected a multiple of {} for {}",
                    checkpoint_->file_of(name), name, in_features, group, format);
}

WeightView WeightStore::keep(QuantizedMatrix matrix) {
  converted_bytes_ += matrix.size_bytes();
  return converted_.emplace_back(std::move(matrix)).view;
}

// A packed weight whose values are another one's now. Those that stay keep their bytes where they are.
void WeightStore::drop(const WeightView& weight) {
  const auto matrix = find_converted(weight);
  CHECK(matrix != converted_.end());
  converted_bytes_ -= matrix->size_bytes();
  converted_.erase(matrix);
}

// The end for a weight whose bytes are not ours.
std::deque<QuantizedMatrix>::iterator WeightStore::find_converted(const WeightView& weight) {
  return std::ranges::find(converted_, weight.data, [](const QuantizedMatrix& m) { return m.view.data; });
}

Result<WeightView> WeightStore::int8_matrix(const WeightTensors& tensors, int64_t out_features, int64_t in_features) {
  BLOCKDRAFT_TRY(expect_groups(tensors.codes, in_features, kInt8Group, "int8"));
  BLOCKDRAFT_ASSIGN(const StoredTensor* weight, codes(tensors.codes, Shape{out_features, in_features}));
  BLOCKDRAFT_ASSIGN(const StoredTensor* scales, codes(tensors.scale, Shape{out_features, in_features / kInt8Group}));
  if (!reads_values()) {
    converted_bytes_ += static_cast<size_t>(int8_bytes(out_features, in_features));
    return WeightView{.dtype = DType::i8, .out_features = out_features, .in_features = in_features};
  }
  if (!has_finite_codes_f16(*scales)) {
    return make_error(Code::corrupt_file, "{}: tensor '{}' holds a value that is not finite",
                      checkpoint_->file_of(tensors.scale), tensors.scale);
  }
  BLOCKDRAFT_ASSIGN(QuantizedMatrix matrix,
                    pack_int8(weight->data, scales->data, out_features, in_features, loading_.threads));
  return keep(std::move(matrix));
}

Result<WeightView> WeightStore::fp8_matrix(const WeightTensors& tensors, int64_t out_features, int64_t in_features) {
  BLOCKDRAFT_ASSIGN(const StoredTensor* weight, codes(tensors.codes, Shape{out_features, in_features}));
  WeightView view{weight->data, weight->dtype, out_features, in_features};
  BLOCKDRAFT_ASSIGN(const Fp8Scales scales, fp8_scales(*checkpoint_, tensors.scale, out_features, in_features));
  BLOCKDRAFT_ASSIGN(const float* values, floats(tensors.scale, checkpoint_->find(tensors.scale)->num_elements()));
  if (values == nullptr) return view;
  switch (scales) {
    case Fp8Scales::tensor:
      if (values[0] == 0.0f) {
        return make_error(Code::corrupt_file, "{}: tensor '{}' is 0, expected another number: all of '{}' would vanish",
                          checkpoint_->file_of(tensors.scale), tensors.scale, tensors.codes);
      }
      view.row_scales = owned_.emplace_back(static_cast<size_t>(out_features), values[0]).data();
      break;
    case Fp8Scales::row:
      view.row_scales = values;
      break;
    case Fp8Scales::block:
      view.block_scales = values;
      break;
  }
  return view;
}

Result<WeightView> WeightStore::nvfp4_matrix(const WeightTensors& tensors, int64_t out_features, int64_t in_features) {
  if (in_features % kScaleGroup != 0) {
    return make_error(Code::unsupported, "{}: '{}' is packed NVFP4 with rows of {} elements, expected a multiple of {}",
                      checkpoint_->file_of(tensors.codes), tensors.codes, in_features, kScaleGroup);
  }
  BLOCKDRAFT_ASSIGN(const StoredTensor* weight, codes(tensors.codes, Shape{out_features, in_features / 2}));
  BLOCKDRAFT_ASSIGN(const StoredTensor* scales, codes(tensors.scale, Shape{out_features, in_features / kScaleGroup}));
  BLOCKDRAFT_ASSIGN(const float factor, global_scale(tensors));
  return WeightView{.data = weight->data,
                    .dtype = DType::u8,
                    .out_features = out_features,
                    .in_features = in_features,
                    .group_scales = scales->data,
                    .global_scale = factor};
}

// FP8 or packed codes, which stay where they are mapped.
Result<const StoredTensor*> WeightStore::codes(const std::string& name, const Shape& shape) {
  BLOCKDRAFT_ASSIGN(const StoredTensor* tensor, checkpoint_->require(name, shape));
  used_.insert(name);
  if (reads_values() && tensor->dtype == DType::f8_e4m3 && has_nan_code(*tensor, loading_.threads)) {
    return make_error(Code::corrupt_file, "{}: tensor '{}' holds an FP8 code for NaN", checkpoint_->file_of(name),
                      name);
  }
  return tensor;
}

// As the multiplier that WeightView wants.
Result<float> WeightStore::global_scale(const WeightTensors& tensors) {
  BLOCKDRAFT_ASSIGN(const float* value, floats(tensors.global_scale, 1));
  if (value == nullptr) return 1.0f;
  const float factor = tensors.global_is_divisor ? 1.0f / *value : *value;
  if (*value == 0.0f || !std::isfinite(factor) || factor == 0.0f) {
    return make_error(Code::corrupt_file, "{}: tensor '{}' is {}, expected a finite number other than zero",
                      checkpoint_->file_of(tensors.global_scale), tensors.global_scale, *value);
  }
  return factor;
}

Result<const StoredTensor*> WeightStore::raw(std::string_view name) {
  BLOCKDRAFT_ASSIGN(const StoredTensor* tensor, checkpoint_->require(full_name(name)));
  used_.insert(full_name(name));
  return tensor;
}

void WeightStore::ignore(std::string_view name) {
  used_.insert(full_name(name));
  if (has(name)) ignored_.push_back(full_name(name));
}

void WeightStore::ignore_matrix(std::string_view name) {
  for (const std::string& tensor : tensors_of(*checkpoint_, full_name(name) + ".weight")) {
    used_.insert(tensor);
    ignored_.push_back(tensor);
  }
}

void WeightStore::forget_values() {
  owned_.clear();
  converted_.clear();
  converted_bytes_ = 0;
  checkpoint_->forget_values();
}

std::vector<std::string> WeightStore::unused() const {
  std::vector<std::string> names = checkpoint_->names();
  std::erase_if(names, [this](const std::string& name) { return used_.contains(name); });
  return names;
}

}  // namespace blockdraft
