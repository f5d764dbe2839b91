// Extents of a tensor of up to four dimensions.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

#include "base/check.h"

namespace blockdraft {

class Shape {
 public:
  static constexpr int kMaxRank = 4;

  Shape() = default;
  Shape(std::initializer_list<int64_t> dims) : Shape(std::span(dims.begin(), dims.size())) {}
  explicit Shape(std::span<const int64_t> dims) : rank_(static_cast<int>(dims.size())) {
    CHECK(dims.size() <= kMaxRank);
    for (int i = 0; i < rank_; ++i) dims_[static_cast<size_t>(i)] = dims[static_cast<size_t>(i)];
  }

  int rank() const { return rank_; }
  int64_t operator[](int axis) const {
    DCHECK(axis >= 0 && axis < rank_);
    return dims_[static_cast<size_t>(axis)];
  }
  int64_t num_elements() const {
    int64_t count = 1;
    for (int i = 0; i < rank_; ++i) count *= dims_[static_cast<size_t>(i)];
    return count;
  }
  std::span<const int64_t> dims() const { return {dims_.data(), static_cast<size_t>(rank_)}; }
  bool operator==(const Shape&) const = default;

 private:
  std::array<int64_t, kMaxRank> dims_{};
  int rank_ = 0;
};

// "[4096, 12288]"
std::string to_string(std::span<const int64_t> dims);
inline std::string to_string(const Shape& shape) { return to_string(shape.dims()); }

}  // namespace blockdraft
