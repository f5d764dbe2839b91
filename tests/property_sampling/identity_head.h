// Small float32 weights, and an output head whose logits are the hidden rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "nn/output_head.h"
#include "tensor/weight_view.h"

namespace blockdraft::test {

inline WeightView weight_f32(const std::vector<float>& values, int64_t out_features, int64_t in_features) {
  return {.data = reinterpret_cast<const std::byte*>(values.data()),
          .dtype = DType::f32,
          .out_features = out_features,
          .in_features = in_features};
}

class IdentityHead {
 public:
  explicit IdentityHead(int64_t size) : values_(static_cast<size_t>(size * size)) {
    for (int64_t i = 0; i < size; ++i) values_[static_cast<size_t>(i * size + i)] = 1.0f;
    head_ = {.weight = weight_f32(values_, size, size), .num_choices = size};
  }
  const OutputHead& head() const { return head_; }

 private:
  std::vector<float> values_;
  OutputHead head_;
};

}  // namespace blockdraft::test
