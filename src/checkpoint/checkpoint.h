// The weights of a model folder: model.safetensors, the shards of model.safetensors.index.json, or random ones.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "blockdraft/result.h"
#include "checkpoint/random_tensors.h"
#include "checkpoint/safetensors.h"
#include "tensor/shape.h"

namespace blockdraft {

// Where weights come from.
struct WeightSource {
  std::filesystem::path folder;
  std::optional<uint64_t> random_seed = {};  // none: out of the folder's files. Otherwise the folder must hold none
};

// Owns the mappings of all shards; tensors point into them. Of files: immutable after open, safe to read from several
// threads; of random tensors: the same as soon as nothing is asked of provide() any more.
// Tensors are looked up over all shards: a weight and its scale may lie in different ones.
class Checkpoint {
 public:
  // Errors, each naming the file: no weights in the folder; both a single file and an index; a shard that is missing,
  // lies outside the folder, or does not hold a tensor that the index places there; a tensor in a shard that the index
  // does not place there; a tensor that two shards hold; and all of safetensors.h.
  // With `data` optional each file may end behind its header.
  static Result<Checkpoint> open(const std::filesystem::path& folder, TensorData data = TensorData::required);

  // Without a seed open(folder). With one: a checkpoint that has the tensors that provide() was asked for;
  // invalid_argument if the folder holds weights.
  static Result<Checkpoint> open_source(const WeightSource& source);

  // A random checkpoint makes the tensor (RandomTensors); one of files leaves it to find() whether it is there. Not
  // thread-safe.
  Status provide(std::string_view name, const Shape& shape) const;
  bool is_random() const { return random_ != nullptr; }

  const std::filesystem::path& folder() const { return folder_; }
  const StoredTensor* find(std::string_view name) const;             // null if absent
  Result<const StoredTensor*> require(std::string_view name) const;  // not_found, naming folder and tensor
  // Also checks the extents: mismatch, naming file, tensor, shape found and shape expected.
  Result<const StoredTensor*> require(std::string_view name, const Shape& shape) const;

  std::vector<std::string> names() const;            // in ascending order
  std::string file_of(std::string_view name) const;  // path of the shard that holds the tensor, for messages
  size_t mapped_bytes() const;                       // all shards together; of random tensors, their memory
  size_t data_bytes() const;                         // of those, tensor data; less than the tensors have if cut short
  bool has_data() const;                             // of all tensors

  // Of a file: the system may take back the memory of this part of it, which stays readable but is not expected to be
  // read again. Of random tensors: nothing.
  void expect_no_reads(const std::byte* data, size_t size_bytes) const;
  // The same for all of a checkpoint; random tensors have no data any more.
  void forget_values() const;

 private:
  Checkpoint() = default;
  static Result<Checkpoint> open_single(const std::filesystem::path& folder, TensorData data);
  static Result<Checkpoint> open_shards(const std::filesystem::path& folder, TensorData data);
  void add(SafetensorsFile file);

  std::filesystem::path folder_;
  std::unique_ptr<RandomTensors> random_;  // null: out of files
  std::vector<SafetensorsFile> files_;
  std::map<std::string, size_t, std::less<>> file_of_;  // tensor name to index in files_
};

}  // namespace blockdraft
