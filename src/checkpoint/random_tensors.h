// Tensors made up on demand, to measure a model's speed from its config alone.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>

#include "blockdraft/result.h"
#include "checkpoint/safetensors.h"
#include "tensor/buffer.h"
#include "tensor/shape.h"

namespace blockdraft {

// Owns the tensors: BF16 and uniformly distributed, so that activations stay finite through any number of layers:
// a matrix of in_features columns has standard deviation 1 / sqrt(in_features), what has one dimension lies within 0.1
// of 1 (norms), or of 0 if its name ends in ".bias". The same seed and the same order of calls give the same values.
// Not thread-safe until the last tensor is made.
class RandomTensors {
 public:
  explicit RandomTensors(uint64_t seed) : seed_(seed) {}

  // Makes the tensor with all cores unless it is there. Errors: out_of_memory.
  Status make(const std::string& name, const Shape& shape);

  const std::map<std::string, StoredTensor, std::less<>>& tensors() const { return tensors_; }
  size_t size_bytes() const;
  void forget_values();  // the tensors have types and shapes only

 private:
  uint64_t seed_;
  std::deque<Buffer> memory_;
  std::map<std::string, StoredTensor, std::less<>> tensors_;
};

}  // namespace blockdraft
