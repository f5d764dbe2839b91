// A file mapped read-only into memory.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

#include "blockdraft/result.h"

namespace blockdraft {

// Owns the mapping; moves only. The bytes stay valid as long as the object lives, whatever happens to the path.
class MappedFile {
 public:
  // Errors: not_found, io_error (not a regular file, or the system refuses), corrupt_file for an empty file.
  static Result<MappedFile> open(const std::filesystem::path& path);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return {data_, size_bytes_}; }

 private:
  MappedFile(const std::byte* data, size_t size_bytes) : data_(data), size_bytes_(size_bytes) {}

  const std::byte* data_ = nullptr;
  size_t size_bytes_ = 0;
};

}  // namespace blockdraft
