// The weights of a model folder: model.safetensors, or the shards of model.safetensors.index.json.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "blockdraft/result.h"
#include "checkpoint/safetensors.h"
#include "tensor/shape.h"

namespace blockdraft {

// Owns the mappings of all shards; tensors point into them. Immutable after open, safe to read from several threads.
// Tensors are looked up over all shards: a weight and its scale may lie in different ones.
class Checkpoint {
 public:
  // Errors, each naming the file: no weights in the folder; both a single file and an index; a shard that is missing,
  // lies outside the folder, or does not hold a tensor that the index places there; a tensor in a shard that the index
  // does not place there; a tensor that two shards hold; and all of safetensors.h.
  // With `data` optional each file may end behind its header.
  static Result<Checkpoint> open(const std::filesystem::path& folder, TensorData data = TensorData::required);

  const std::filesystem::path& folder() const { return folder_; }
  const StoredTensor* find(std::string_view name) const;             // null if absent
  Result<const StoredTensor*> require(std::string_view name) const;  // not_found, naming folder and tensor
  // Also checks the extents: mismatch, naming file, tensor, shape found and shape expected.
  Result<const StoredTensor*> require(std::string_view name, const Shape& shape) const;

  std::vector<std::string> names() const;            // in ascending order
  std::string file_of(std::string_view name) const;  // path of the shard that holds the tensor, for messages
  size_t mapped_bytes() const;                       // all shards together
  size_t data_bytes() const;                         // of those, tensor data; less than the tensors have if cut short
  bool has_data() const;                             // of all tensors

 private:
  Checkpoint() = default;
  static Result<Checkpoint> open_single(const std::filesystem::path& folder, TensorData data);
  static Result<Checkpoint> open_shards(const std::filesystem::path& folder, TensorData data);
  void add(SafetensorsFile file);

  std::filesystem::path folder_;
  std::vector<SafetensorsFile> files_;
  std::map<std::string, size_t, std::less<>> file_of_;  // tensor name to index in files_
};

}  // namespace blockdraft
