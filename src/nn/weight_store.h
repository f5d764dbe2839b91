// Turns checkpoint tensors into the views that ops take, and owns what had to be converted on the way.
#pragma once

#include <deque>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "blockdraft/result.h"
#include "checkpoint/checkpoint.h"
#include "tensor/tensor_view.h"
#include "tensor/weight_view.h"

namespace blockdraft {

// Matrices stay where they are mapped; norm weights, biases and scales become float32 of our own (they are small).
// The format of a matrix is decided per tensor from its companions, not from quantization_config (spec 3.5).
// Immutable once loading is done.
class WeightStore {
 public:
  // `prefix` is what the file puts before the names used here ("model." in some drafters); "" for none.
  WeightStore(std::shared_ptr<const Checkpoint> checkpoint, std::string prefix);

  bool has(std::string_view name) const;
  // A norm weight [dim].
  Result<ConstTensorView> vector(std::string_view name, int64_t dim);
  // `name`.weight [out_features, in_features] with the scale that belongs to it, and `name`.bias if `with_bias`.
  // Errors: missing, wrong shape, a dtype or scale layout that no kernel takes, an FP8 NaN code.
  Result<WeightView> matrix(std::string_view name, int64_t out_features, int64_t in_features, bool with_bias = false);
  // The same for a parameter whose name has no ".weight" at its end, without bias.
  Result<WeightView> parameter(std::string_view name, int64_t out_features, int64_t in_features);
  // A small tensor of any shape as contiguous float32.
  Result<ConstTensorView> tensor(std::string_view name, const Shape& shape);
  // The raw tensor, for what is not a weight (d2t).
  Result<const StoredTensor*> raw(std::string_view name);
  // Marks a tensor as known though it is not needed.
  void ignore(std::string_view name);

  // Tensors of the checkpoint that nothing asked for.
  std::vector<std::string> unused() const;
  const Checkpoint& checkpoint() const { return *checkpoint_; }

 private:
  std::string full_name(std::string_view name) const { return prefix_ + std::string(name); }
  Result<const float*> floats(const std::string& full_name, int64_t count);
  Result<WeightView> stored_matrix(const std::string& name, int64_t out_features, int64_t in_features);
  Result<const float*> row_scales(const std::string& weight_name, int64_t rows);

  std::shared_ptr<const Checkpoint> checkpoint_;
  std::string prefix_;
  std::deque<std::vector<float>> owned_;
  std::set<std::string, std::less<>> used_;
};

}  // namespace blockdraft
