// Turns checkpoint tensors into the views that ops take, and owns what had to be converted on the way.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "blockdraft/result.h"
#include "checkpoint/checkpoint.h"
#include "nn/quantize.h"
#include "nn/weight_formats.h"
#include "tensor/tensor_view.h"
#include "tensor/weight_view.h"

namespace blockdraft {

// What linear weights are in memory.
enum class LoadFormat {
  stored,  // as their file has them
  bf16,    // to nearest even
  fp8,     // E4M3 with a scale a row
  nvfp4,
};

// Matrices stay where they are mapped; norm weights, biases and scales become float32 of our own (they are small).
// The format of a matrix is decided per tensor from its companions (nn/weight_formats.h); each keeps its own scales.
// Immutable once loading is done.
class WeightStore {
 public:
  // `prefix` is what the file puts before the names used here ("model." in some drafters); "" for none.
  WeightStore(std::shared_ptr<const Checkpoint> checkpoint, std::string prefix);

  // Linear weights (is_quantizable) that are loaded from here on get this format, in memory of our own where they do
  // not have it yet (nn/quantize.h); the errors of two roundings add up. Their errors then also are: numeric for a
  // value that is not finite, or not in BF16.
  void convert_at_load(LoadFormat format) { format_ = format; }
  size_t converted_bytes() const;  // of what was converted

  bool has(std::string_view name) const;
  bool has_matrix(std::string_view name) const;  // `name`.weight, packed or not
  // A norm weight [dim].
  Result<ConstTensorView> vector(std::string_view name, int64_t dim);
  // `name`.weight [out_features, in_features] with the scales that belong to it, and `name`.bias if `with_bias`.
  // Errors: those of find_weight and fp8_scales; mismatch for a wrong shape; corrupt_file for an FP8 code for NaN, in
  // weights or scales, and for a scale that is not finite or, of a whole tensor, zero; unsupported for NVFP4 rows that
  // are not whole groups of 16.
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
  Result<WeightView> view_of(const WeightTensors& tensors, int64_t out_features, int64_t in_features);
  Result<WeightView> converted(const WeightTensors& tensors, const WeightView& weight);
  Result<WeightView> fp8_matrix(const WeightTensors& tensors, int64_t out_features, int64_t in_features);
  Result<WeightView> nvfp4_matrix(const WeightTensors& tensors, int64_t out_features, int64_t in_features);
  Result<const StoredTensor*> codes(const std::string& name, const Shape& shape);
  Result<float> global_scale(const WeightTensors& tensors);

  std::shared_ptr<const Checkpoint> checkpoint_;
  std::string prefix_;
  LoadFormat format_ = LoadFormat::stored;
  std::deque<std::vector<float>> owned_;
  std::deque<QuantizedMatrix> converted_;
  std::set<std::string, std::less<>> used_;
};

}  // namespace blockdraft
