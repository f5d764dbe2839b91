// The card that the suite runs on, and what its cases need there: copies of their arguments, and results back.
#pragma once

#include <cstring>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "support/op_context.h"
#include "tensor/batch_view.h"
#include "tensor/codec.h"
#include "tensor/cuda_device.h"
#include "tensor/paged_kv.h"
#include "tensor/weight_view.h"

namespace blockdraft::test {

class Card {
 public:
  static Status open();  // card 0, or that of BLOCKDRAFT_CARD
  static void close();
  static CudaDevice& device();
};

// Runs ops on the card and on the CPU. What was uploaded lives as long as this.
class OnCard {
 public:
  explicit OnCard(size_t arena_bytes = size_t{256} << 20);
  ~OnCard();

  Context& card() { return card_; }
  Context& cpu() { return cpu_; }  // portable kernels, 4 threads

  template <class T>
  T* upload(const T* values, int64_t count) {
    auto* memory = static_cast<T*>(allocate(static_cast<size_t>(count) * sizeof(T)));
    Card::device().copy_to_device(memory, values, static_cast<size_t>(count) * sizeof(T), "upload");
    return memory;
  }
  template <class T>
  T* upload(const std::vector<T>& values) {
    return upload(values.data(), static_cast<int64_t>(values.size()));
  }
  TensorView upload(const Matrix& matrix);  // with what lies between the rows
  WeightView upload(const WeightView& weight);
  BatchView upload(const BatchView& batch);
  PagedKvView upload_bf16(const PagedKvView& kv);  // rounded
  TensorView upload_bf16(const Matrix& matrix);    // rounded, with what lies between the rows

  // Memory in which every byte is 0xFF: NaN, and -1.
  void* poisoned(size_t size_bytes);
  TensorView poisoned_bf16(int64_t rows, int64_t columns, int64_t row_stride = 0);
  int32_t* poisoned_i32(int64_t count) { return static_cast<int32_t*>(poisoned(static_cast<size_t>(count) * 4)); }

  template <class T>
  std::vector<T> download(const T* memory, int64_t count) {
    std::vector<T> values(static_cast<size_t>(count));
    Card::device().copy_to_host(values.data(), memory, values.size() * sizeof(T), "download");
    synchronize();
    return values;
  }
  Matrix download(const ConstTensorView& view);  // float32 or BF16, with what lies between the rows

  void synchronize();  // a test fails if the device reports an error

 private:
  void* allocate(size_t size_bytes);

  std::vector<Buffer> memory_;
  Arena arena_;
  Context card_;
  OpContext cpu_;
};

// What K/V on a card hold of these.
inline void round_to_bf16(float* values, int64_t count) {
  for (int64_t i = 0; i < count; ++i) values[i] = float_from_bf16(bf16_from_float(values[i]));
}

// What a BF16 result shall be.
inline Matrix rounded(Matrix matrix) {
  for (int64_t r = 0; r < matrix.rows(); ++r) round_to_bf16(matrix.row(r), matrix.columns());
  return matrix;
}

// The largest difference, over the largest magnitude of `expected`; infinite if one is NaN and the other is not.
double relative_error(const Matrix& found, const Matrix& expected);

}  // namespace blockdraft::test
