#include "checkpoint/checkpoint.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include <sys/mman.h>
#include <unistd.h>

#include "base/error.h"
#include "base/json.h"
#include "checkpoint/config_reader.h"

namespace blockdraft {
namespace {

constexpr const char* kSingleFile = "model.safetensors";
constexpr const char* kIndexFile = "model.safetensors.index.json";

// Tensor name to file name of its shard.
using WeightMap = std::map<std::string, std::string, std::less<>>;

bool is_present(const std::filesystem::path& path) {
  std::error_code ignored;
  // A link that points nowhere exists too: opening it then names what is wrong.
  return std::filesystem::symlink_status(path, ignored).type() != std::filesystem::file_type::not_found;
}

// Shards are named by bare file names; anything that could lead out of the folder is refused. (The file itself may be
// a link: download caches store them so.)
bool is_file_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." && name.find_first_of(std::string_view("/\\\0", 3)) == name.npos;
}

Result<WeightMap> read_index(const std::filesystem::path& path) {
  BLOCKDRAFT_ASSIGN(const Json index, read_json_file(path));
  const std::string origin = path.string();
  if (!index.is_object()) {
    return make_error(Code::corrupt_file, "{}: found {}, expected an object", origin, json_type_name(index));
  }
  const auto weight_map = index.find("weight_map");
  if (weight_map == index.end() || !weight_map->is_object()) {
    return make_error(Code::corrupt_file, "{}: 'weight_map' is {}, expected an object", origin,
                      weight_map == index.end() ? "missing" : json_type_name(*weight_map));
  }
  WeightMap shards;
  for (const auto& [tensor, shard] : weight_map->items()) {
    if (!shard.is_string() || !is_file_name(shard.get_ref<const std::string&>())) {
      return make_error(Code::corrupt_file,
                        "{}: tensor '{}' lies in {}, expected the name of a file in the same folder", origin,
                        printable(tensor), json_excerpt(shard));
    }
    shards.emplace_hint(shards.end(), tensor, shard.get<std::string>());
  }
  if (shards.empty()) return make_error(Code::corrupt_file, "{}: 'weight_map' names no tensors", origin);
  return shards;
}

Result<SafetensorsFile> open_shard(const std::filesystem::path& index, const std::string& shard,
                                   std::string_view tensor, TensorData data) {
  const std::filesystem::path path = index.parent_path() / shard;
  if (!is_present(path)) {
    return make_error(Code::not_found, "{}: the shard is missing; {} places tensor '{}' there", path.string(),
                      index.string(), printable(tensor));
  }
  return SafetensorsFile::open(path, data);
}

// Index and shard must tell the same story about where tensors lie.
Status check_placement(const std::filesystem::path& index, const WeightMap& shards, const std::string& shard,
                       const SafetensorsFile& file) {
  for (const auto& [tensor, ignored] : file.tensors()) {
    const auto placed = shards.find(tensor);
    if (placed == shards.end()) {
      return make_error(Code::mismatch, "{}: holds tensor '{}', which {} does not name", file.path().string(),
                        printable(tensor), index.string());
    }
    if (placed->second != shard) {
      return make_error(Code::mismatch, "{}: holds tensor '{}', which {} places in shard '{}'", file.path().string(),
                        printable(tensor), index.string(), printable(placed->second));
    }
  }
  for (const auto& [tensor, placed] : shards) {
    if (placed == shard && file.find(tensor) == nullptr) {
      return make_error(Code::mismatch, "{}: does not hold tensor '{}', which {} places there", file.path().string(),
                        printable(tensor), index.string());
    }
  }
  return {};
}

}  // namespace

Result<Checkpoint> Checkpoint::open(const std::filesystem::path& folder, TensorData data) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(folder, ignored)) {
    return make_error(Code::not_found, "{}: no such folder, expected one with {} or {}", folder.string(), kSingleFile,
                      kIndexFile);
  }
  const bool has_single = is_present(folder / kSingleFile);
  const bool has_index = is_present(folder / kIndexFile);
  if (has_single && has_index) {
    return make_error(Code::mismatch, "{}: holds both {} and {}, expected one of them", folder.string(), kSingleFile,
                      kIndexFile);
  }
  if (!has_single && !has_index) {
    return make_error(Code::not_found, "{}: no weights, expected {} or {}", folder.string(), kSingleFile, kIndexFile);
  }
  return has_single ? open_single(folder, data) : open_shards(folder, data);
}

Result<Checkpoint> Checkpoint::open_source(const WeightSource& source) {
  if (!source.random_seed) return open(source.folder);
  for (const char* file : {kSingleFile, kIndexFile}) {
    if (!is_present(source.folder / file)) continue;
    return make_error(Code::invalid_argument, "{}: holds {}, expected no weights, as random ones are asked for",
                      source.folder.string(), file);
  }
  Checkpoint checkpoint;
  checkpoint.folder_ = source.folder;
  checkpoint.random_ = std::make_unique<RandomTensors>(*source.random_seed);
  return checkpoint;
}

Status Checkpoint::provide(std::string_view name, const Shape& shape) const {
  return random_ == nullptr ? Status() : random_->make(std::string(name), shape);
}

Result<Checkpoint> Checkpoint::open_single(const std::filesystem::path& folder, TensorData data) {
  Checkpoint checkpoint;
  checkpoint.folder_ = folder;
  BLOCKDRAFT_ASSIGN(SafetensorsFile file, SafetensorsFile::open(folder / kSingleFile, data));
  checkpoint.add(std::move(file));
  return checkpoint;
}

Result<Checkpoint> Checkpoint::open_shards(const std::filesystem::path& folder, TensorData data) {
  const std::filesystem::path index = folder / kIndexFile;
  BLOCKDRAFT_ASSIGN(const WeightMap shards, read_index(index));
  // Each shard once, with the first tensor placed there for the message if the shard is missing.
  std::map<std::string, std::string_view> first_tensors;
  for (const auto& [tensor, shard] : shards) first_tensors.emplace(shard, tensor);
  Checkpoint checkpoint;
  checkpoint.folder_ = folder;
  for (const auto& [shard, tensor] : first_tensors) {
    BLOCKDRAFT_ASSIGN(SafetensorsFile file, open_shard(index, shard, tensor, data));
    BLOCKDRAFT_TRY(check_placement(index, shards, shard, file));
    checkpoint.add(std::move(file));
  }
  return checkpoint;
}

void Checkpoint::add(SafetensorsFile file) {
  for (const auto& [tensor, ignored] : file.tensors()) file_of_.emplace(tensor, files_.size());
  files_.push_back(std::move(file));
}

const StoredTensor* Checkpoint::find(std::string_view name) const {
  if (random_ != nullptr) {
    const auto made = random_->tensors().find(name);
    return made == random_->tensors().end() ? nullptr : &made->second;
  }
  const auto found = file_of_.find(name);
  return found == file_of_.end() ? nullptr : files_[found->second].find(name);
}

Result<const StoredTensor*> Checkpoint::require(std::string_view name) const {
  if (const StoredTensor* tensor = find(name)) return tensor;
  return make_error(Code::not_found, "{}: tensor '{}' is missing", folder_.string(), printable(name));
}

Result<const StoredTensor*> Checkpoint::require(std::string_view name, const Shape& shape) const {
  BLOCKDRAFT_ASSIGN(const StoredTensor* tensor, require(name));
  if (!std::ranges::equal(tensor->shape, shape.dims())) {
    return make_error(Code::mismatch, "{}: tensor '{}' has shape {}, expected {}", file_of(name), printable(name),
                      to_string(tensor->shape), to_string(shape));
  }
  return tensor;
}

std::vector<std::string> Checkpoint::names() const {
  std::vector<std::string> names;
  names.reserve(file_of_.size());
  for (const auto& [name, ignored] : file_of_) names.push_back(name);
  if (random_ == nullptr) return names;
  for (const auto& [name, ignored] : random_->tensors()) names.push_back(name);
  return names;
}

std::string Checkpoint::file_of(std::string_view name) const {
  const auto found = file_of_.find(name);
  return found == file_of_.end() ? folder_.string() : files_[found->second].path().string();
}

size_t Checkpoint::mapped_bytes() const {
  size_t total = random_ == nullptr ? 0 : random_->size_bytes();
  for (const SafetensorsFile& file : files_) total += file.size_bytes();
  return total;
}

size_t Checkpoint::data_bytes() const {
  size_t total = random_ == nullptr ? 0 : random_->size_bytes();
  for (const SafetensorsFile& file : files_) total += file.size_bytes() - file.header_bytes();
  return total;
}

bool Checkpoint::has_data() const { return std::ranges::all_of(files_, &SafetensorsFile::has_data); }

void Checkpoint::expect_no_reads(const std::byte* data, size_t size_bytes) const {
  if (random_ != nullptr) return;
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = (reinterpret_cast<uintptr_t>(data) + page - 1) / page * page;
  const auto end = (reinterpret_cast<uintptr_t>(data) + size_bytes) / page * page;
  // Advice on a mapping that nobody writes: at worst, memory stays in use.
  if (begin < end) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

void Checkpoint::forget_values() const {
  if (random_ != nullptr) return random_->forget_values();
  for (const std::string& name : names()) {
    const StoredTensor& tensor = *find(name);
    expect_no_reads(tensor.data, tensor.size_bytes);
  }
}

}  // namespace blockdraft
