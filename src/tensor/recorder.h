// Intermediate tensors of a pass, kept under their names for whoever compares them with another implementation.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/context.h"
#include "tensor/dtype.h"
#include "tensor/tensor_view.h"

namespace blockdraft {

struct RecordedTensor {
  DType dtype = DType::f32;        // or i32
  std::vector<int64_t> row_shape;  // extents beside the number of rows
  std::vector<float> floats;       // [rows, row_shape] of f32
  std::vector<int32_t> integers;   // [rows, row_shape] of i32

  int64_t row_size() const;
  int64_t rows() const;
  std::vector<int64_t> shape() const;
  std::span<const std::byte> bytes() const;
};

// Allocates as it grows. Used by one thread at a time.
class Recorder {
 public:
  // Appends the rows of `view`, f32 or i32, to the tensor of this name. All rows of a name have the same extents.
  void append(std::string_view name, const ConstTensorView& view);
  // Row `index`, for rows that come in an order of their own. Rows before it that never come stay 0.
  void put(std::string_view name, int64_t index, std::span<const float> row);

  const std::map<std::string, RecordedTensor, std::less<>>& tensors() const { return tensors_; }
  const RecordedTensor* find(std::string_view name) const;
  void clear() { tensors_.clear(); }

 private:
  RecordedTensor& tensor(std::string_view name, DType dtype, std::span<const int64_t> row_shape);

  std::map<std::string, RecordedTensor, std::less<>> tensors_;
};

// With a recorder: what record() does.
void record_rows(const Context& context, std::string_view name, const ConstTensorView& view);

// Nothing without a recorder. Rows of a card are waited for and copied.
inline void record(const Context& context, std::string_view name, const ConstTensorView& view) {
  if (context.recorder != nullptr) record_rows(context, name, view);
}
// Of an array of the CPU's.
inline void record(const Context& context, std::string_view name, std::span<const int32_t> ids) {
  if (context.recorder == nullptr) return;
  context.recorder->append(name, {ids.data(), DType::i32, Shape{static_cast<int64_t>(ids.size())}, 1});
}
// As "NAME.LAYER".
void record_layer(const Context& context, std::string_view name, size_t layer, const ConstTensorView& view);

}  // namespace blockdraft
