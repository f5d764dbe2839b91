#include "nn/weight_store.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "tensor/codec.h"

namespace blockdraft {
namespace {

bool has_nan_code(const StoredTensor& tensor) {
  return std::any_of(tensor.data, tensor.data + tensor.size_bytes,
                     [](std::byte code) { return (std::to_integer<int>(code) & 0x7f) == 0x7f; });
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

bool is_plain_float(DType dtype) { return dtype == DType::f32 || dtype == DType::bf16 || dtype == DType::f16; }

}  // namespace

WeightStore::WeightStore(std::shared_ptr<const Checkpoint> checkpoint, std::string prefix)
    : checkpoint_(std::move(checkpoint)), prefix_(std::move(prefix)) {}

bool WeightStore::has(std::string_view name) const { return checkpoint_->find(full_name(name)) != nullptr; }

Result<ConstTensorView> WeightStore::vector(std::string_view name, int64_t dim) {
  BLOCKDRAFT_ASSIGN(const float* values, floats(full_name(name), dim));
  return view_f32(values, Shape{dim});
}

// Any shape with the right number of elements: a scale is [out], [out, 1] or, for one row, a scalar.
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
  std::vector<float>& values = owned_.emplace_back(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) values[i] = element(*tensor, i);
  if (!std::ranges::all_of(values, [](float value) { return std::isfinite(value); })) {
    return make_error(Code::corrupt_file, "{}: tensor '{}' holds a value that is not finite",
                      checkpoint_->file_of(name), name);
  }
  return values.data();
}

Result<const float*> WeightStore::row_scales(const std::string& weight_name, int64_t rows) {
  const std::string scale_name = weight_name + "_scale";
  const StoredTensor* scale = checkpoint_->find(scale_name);
  if (scale == nullptr) {
    return make_error(Code::not_found,
                      "{}: tensor '{}' is F8_E4M3 and has no '{}' (FP8 is read with one scale a row only)",
                      checkpoint_->file_of(weight_name), weight_name, scale_name);
  }
  if (scale->num_elements() != rows) {
    return make_error(Code::unsupported, "{}: tensor '{}' has shape {}, expected [{}, 1]: one scale a row",
                      checkpoint_->file_of(scale_name), scale_name, to_string(scale->shape), rows);
  }
  return floats(scale_name, rows);
}

Result<WeightView> WeightStore::matrix(std::string_view name, int64_t out_features, int64_t in_features,
                                       bool with_bias) {
  const std::string weight_name = full_name(name) + ".weight";
  if (checkpoint_->find(weight_name) == nullptr && checkpoint_->find(full_name(name) + ".weight_packed") != nullptr) {
    return make_error(Code::unsupported, "{}: '{}' is packed NVFP4, expected BF16, F16, F32 or F8_E4M3",
                      checkpoint_->file_of(full_name(name) + ".weight_packed"), full_name(name));
  }
  BLOCKDRAFT_ASSIGN(WeightView view, stored_matrix(weight_name, out_features, in_features));
  if (with_bias) {
    BLOCKDRAFT_ASSIGN(view.bias, floats(full_name(name) + ".bias", out_features));
  }
  return view;
}

Result<WeightView> WeightStore::parameter(std::string_view name, int64_t out_features, int64_t in_features) {
  return stored_matrix(full_name(name), out_features, in_features);
}

Result<ConstTensorView> WeightStore::tensor(std::string_view name, const Shape& shape) {
  BLOCKDRAFT_TRY(checkpoint_->require(full_name(name), shape));
  BLOCKDRAFT_ASSIGN(const float* values, floats(full_name(name), shape.num_elements()));
  return view_f32(values, shape);
}

Result<WeightView> WeightStore::stored_matrix(const std::string& name, int64_t out_features, int64_t in_features) {
  BLOCKDRAFT_ASSIGN(const StoredTensor* tensor, checkpoint_->require(name));
  const std::string file = checkpoint_->file_of(name);
  // Before the shape: a packed tensor has another shape, and its type is the better explanation.
  if (!is_plain_float(tensor->dtype) && tensor->dtype != DType::f8_e4m3) {
    return make_error(Code::unsupported, "{}: tensor '{}' has type {}, expected BF16, F16, F32 or F8_E4M3{}", file,
                      name, name_of(tensor->dtype), tensor->dtype == DType::u8 ? " (packed NVFP4 is not read)" : "");
  }
  BLOCKDRAFT_ASSIGN(tensor, checkpoint_->require(name, Shape{out_features, in_features}));
  used_.insert(name);

  WeightView view{tensor->data, tensor->dtype, out_features, in_features};
  if (tensor->dtype == DType::f8_e4m3) {
    if (has_nan_code(*tensor)) {
      return make_error(Code::corrupt_file, "{}: tensor '{}' holds an FP8 code for NaN", file, name);
    }
    BLOCKDRAFT_ASSIGN(view.row_scales, row_scales(name, out_features));
  }
  return view;
}

Result<const StoredTensor*> WeightStore::raw(std::string_view name) {
  BLOCKDRAFT_ASSIGN(const StoredTensor* tensor, checkpoint_->require(full_name(name)));
  used_.insert(full_name(name));
  return tensor;
}

void WeightStore::ignore(std::string_view name) { used_.insert(full_name(name)); }

std::vector<std::string> WeightStore::unused() const {
  std::vector<std::string> names = checkpoint_->names();
  std::erase_if(names, [this](const std::string& name) { return used_.contains(name); });
  return names;
}

}  // namespace blockdraft
