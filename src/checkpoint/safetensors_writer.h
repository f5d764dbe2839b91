// Writes one safetensors file, tensor after tensor, without holding them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include "blockdraft/result.h"
#include "tensor/dtype.h"

namespace blockdraft {

struct TensorSpec {
  std::string name;
  DType dtype = DType::f32;
  std::vector<int64_t> shape;

  size_t size_bytes() const;
};

// The header comes first, so all tensors are declared at the beginning; their bytes then follow in that order. Names
// must differ. Not safe to use from several threads.
class SafetensorsWriter {
 public:
  // Errors: io_error if the file exists or cannot be written, naming it.
  static Result<SafetensorsWriter> create(const std::filesystem::path& path, const std::vector<TensorSpec>& tensors);

  // The next bytes, in pieces of any size. More than was declared is a bug of the caller.
  Status append(std::span<const std::byte> bytes);
  // Closes the file. Fewer bytes than were declared are a bug of the caller.
  Status finish();

 private:
  explicit SafetensorsWriter(std::filesystem::path path) : path_(std::move(path)) {}

  std::filesystem::path path_;
  std::ofstream file_;
  size_t remaining_ = 0;
};

}  // namespace blockdraft
