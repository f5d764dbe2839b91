// What an op needs to run in a test, and comparisons of what it wrote.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "tensor/context.h"
#include "tensor/tensor_view.h"

namespace blockdraft::test {

// What BLOCKDRAFT_CPU_ISA says; the suite runs these tests with each.
inline CpuIsa isa_under_test() {
  const auto isa = choose_cpu_isa();
  if (isa) return *isa;
  std::fprintf(stderr, "%s\n", isa.error().message.c_str());
  std::exit(1);
}

// The last instruction set of this processor whose kernels keep activations in float32: their results differ from
// definitions and recordings by the order of sums alone.
inline CpuIsa float32_isa() { return std::min(best_cpu_isa(), CpuIsa::avx512); }

class OpContext {
 public:
  explicit OpContext(int num_threads = 1, size_t arena_bytes = size_t{16} << 20, CpuIsa isa = isa_under_test())
      : pool_(num_threads),
        arena_(Buffer::allocate(arena_bytes, "test arena").value()),
        context_{&pool_, &arena_, isa} {}
  operator Context&() { return context_; }  // NOLINT(google-explicit-constructor)
  Context* operator->() { return &context_; }

 private:
  ThreadPool pool_;
  Arena arena_;
  Context context_;
};

// A float32 matrix with a row stride; what lies between the rows is NaN and must stay so.
class Matrix {
 public:
  Matrix(int64_t rows, int64_t columns, int64_t row_stride = 0)
      : rows_(rows),
        columns_(columns),
        row_stride_(row_stride == 0 ? columns : row_stride),
        data_(static_cast<size_t>(rows * row_stride_), std::nanf("")) {}

  static Matrix random(std::mt19937& generator, int64_t rows, int64_t columns, int64_t row_stride = 0) {
    Matrix matrix(rows, columns, row_stride);
    std::normal_distribution<float> normal;
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < columns; ++c) matrix.row(r)[c] = normal(generator);
    }
    return matrix;
  }

  int64_t rows() const { return rows_; }
  int64_t columns() const { return columns_; }
  float* row(int64_t r) { return data_.data() + r * row_stride_; }
  const float* row(int64_t r) const { return data_.data() + r * row_stride_; }
  TensorView view() { return {data_.data(), DType::f32, Shape{rows_, columns_}, row_stride_}; }
  ConstTensorView view() const { return {data_.data(), DType::f32, Shape{rows_, columns_}, row_stride_}; }

  bool gaps_untouched() const {
    for (int64_t r = 0; r < rows_; ++r) {
      for (int64_t c = columns_; c < row_stride_; ++c) {
        if (!std::isnan(row(r)[c])) return false;
      }
    }
    return true;
  }

 private:
  int64_t rows_;
  int64_t columns_;
  int64_t row_stride_;
  std::vector<float> data_;
};

inline bool same_bits(const float* a, const float* b, int64_t count) {
  return std::memcmp(a, b, static_cast<size_t>(count) * sizeof(float)) == 0;
}

inline ::testing::AssertionResult same_bits(const Matrix& a, const Matrix& b) {
  if (a.rows() != b.rows() || a.columns() != b.columns()) return ::testing::AssertionFailure() << "shapes differ";
  for (int64_t r = 0; r < a.rows(); ++r) {
    for (int64_t c = 0; c < a.columns(); ++c) {
      if (same_bits(a.row(r) + c, b.row(r) + c, 1)) continue;
      return ::testing::AssertionFailure()
             << "row " << r << ", column " << c << ": " << std::hexfloat << a.row(r)[c] << " and " << b.row(r)[c];
    }
  }
  return ::testing::AssertionSuccess();
}

}  // namespace blockdraft::test
