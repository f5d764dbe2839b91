#include "tensor/recorder.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include <fmt/core.h>

#include "base/check.h"
#include "tensor/read_back.h"

namespace blockdraft {

int64_t RecordedTensor::row_size() const {
  return std::accumulate(row_shape.begin(), row_shape.end(), int64_t{1}, std::multiplies<>());
}

int64_t RecordedTensor::rows() const {
  const size_t elements = dtype == DType::f32 ? floats.size() : integers.size();
  return static_cast<int64_t>(elements) / row_size();
}

std::vector<int64_t> RecordedTensor::shape() const {
  std::vector<int64_t> extents{rows()};
  extents.insert(extents.end(), row_shape.begin(), row_shape.end());
  return extents;
}

std::span<const std::byte> RecordedTensor::bytes() const {
  return dtype == DType::f32 ? std::as_bytes(std::span(floats)) : std::as_bytes(std::span(integers));
}

RecordedTensor& Recorder::tensor(std::string_view name, DType dtype, std::span<const int64_t> row_shape) {
  CHECK(dtype == DType::f32 || dtype == DType::i32);
  const auto [place, is_new] = tensors_.try_emplace(std::string(name));
  RecordedTensor& tensor = place->second;
  if (is_new) {
    tensor.dtype = dtype;
    tensor.row_shape.assign(row_shape.begin(), row_shape.end());
  }
  CHECK(tensor.dtype == dtype && std::ranges::equal(tensor.row_shape, row_shape));
  return tensor;
}

void Recorder::append(std::string_view name, const ConstTensorView& view) {
  RecordedTensor& to = tensor(name, view.dtype, view.shape.dims().subspan(1));
  const int64_t row_size = to.row_size();
  const auto append_rows = [&]<class T>(std::vector<T>& values) {
    for (int64_t r = 0; r < view.dim(0); ++r) {
      const T* row = static_cast<const T*>(view.data) + r * view.row_stride;
      values.insert(values.end(), row, row + row_size);
    }
  };
  if (view.dtype == DType::f32) {
    append_rows(to.floats);
  } else {
    append_rows(to.integers);
  }
}

void Recorder::put(std::string_view name, int64_t index, std::span<const float> row) {
  const auto size = static_cast<int64_t>(row.size());
  RecordedTensor& to = tensor(name, DType::f32, {&size, 1});
  to.floats.resize(std::max(to.floats.size(), static_cast<size_t>((index + 1) * size)));
  std::ranges::copy(row, to.floats.begin() + index * size);
}

const RecordedTensor* Recorder::find(std::string_view name) const {
  const auto place = tensors_.find(name);
  return place == tensors_.end() ? nullptr : &place->second;
}

void record_rows(const Context& context, std::string_view name, const ConstTensorView& view) {
  if (context.cuda == nullptr) return context.recorder->append(name, view);
  const int64_t row_elements = view.shape.num_elements() / std::max<int64_t>(view.dim(0), 1);
  const int64_t elements = view.dim(0) == 0 ? 0 : (view.dim(0) - 1) * view.row_stride + row_elements;
  std::vector<std::byte> copy(static_cast<size_t>(elements) * size_of(view.dtype));
  read_back(*context.cuda, copy.data(), view.data, copy.size());
  ConstTensorView on_cpu = view;
  on_cpu.data = copy.data();
  context.recorder->append(name, on_cpu);
}

void record_layer(const Context& context, std::string_view name, size_t layer, const ConstTensorView& view) {
  if (context.recorder != nullptr) record_rows(context, fmt::format("{}.{}", name, layer), view);
}

}  // namespace blockdraft
