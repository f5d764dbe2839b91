// One safetensors file, mapped and checked. Format: 8 bytes little-endian header length, JSON header, tensor bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/mapped_file.h"
#include "blockdraft/result.h"
#include "tensor/dtype.h"

namespace blockdraft {

// A tensor as the file holds it. `data` points into the mapping and need not be aligned to the element size; null if
// the file was opened without its data.
struct StoredTensor {
  DType dtype = DType::f32;
  std::vector<int64_t> shape;  // empty for a scalar
  const std::byte* data = nullptr;
  size_t size_bytes = 0;

  int64_t num_elements() const;
};

// Name, type, extents and byte range of one tensor as the header states them.
struct TensorEntry {
  DType dtype = DType::f32;
  std::vector<int64_t> shape;
  size_t begin = 0;  // relative to the first byte after the header
  size_t end = 0;
};

using TensorEntries = std::map<std::string, TensorEntry, std::less<>>;

inline constexpr size_t kMaxHeaderBytes = 100'000'000;  // as the format's own reader limits it

// Whether a file must hold the data of its tensors. `optional`: it may end anywhere behind its header, like the
// beginning of a download, and can be looked at but not loaded.
enum class TensorData { required, optional };

// Checks and reads the header in `bytes` (the beginning of a file, through its header at least) of a file of
// `file_size_bytes`. `origin` names the file in errors. With `data` optional the file may end before its tensors do.
// Refused as corrupt_file: a length beyond the file or kMaxHeaderBytes, bad JSON (base/json.h), missing, unknown or
// mistyped keys, negative numbers, an unknown dtype (unsupported), shapes whose product overflows, offsets out of order
// or beyond the file, byte ranges that do not match the shape, that overlap or leave gaps, and bytes after the last
// tensor.
Result<TensorEntries> parse_safetensors_header(std::span<const std::byte> bytes, size_t file_size_bytes,
                                               std::string_view origin, TensorData data = TensorData::required);

// Owns the mapping. Immutable after open, safe to read from several threads.
class SafetensorsFile {
 public:
  static Result<SafetensorsFile> open(const std::filesystem::path& path, TensorData data = TensorData::required);

  const std::filesystem::path& path() const { return path_; }
  const std::map<std::string, StoredTensor, std::less<>>& tensors() const { return tensors_; }
  const StoredTensor* find(std::string_view name) const;  // null if absent
  size_t size_bytes() const { return file_.bytes().size(); }
  size_t header_bytes() const { return header_bytes_; }  // what comes before the data
  // False if the file ends before its tensors do; then all of them are without data.
  bool has_data() const { return has_data_; }

 private:
  SafetensorsFile(std::filesystem::path path, MappedFile file) : path_(std::move(path)), file_(std::move(file)) {}

  std::filesystem::path path_;
  MappedFile file_;
  size_t header_bytes_ = 0;
  bool has_data_ = true;
  std::map<std::string, StoredTensor, std::less<>> tensors_;
};

}  // namespace blockdraft
