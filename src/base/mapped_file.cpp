#include "base/mapped_file.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"

namespace blockdraft {
namespace {

Error system_error(const std::filesystem::path& path, int error) {
  const Code code = error == ENOENT ? Code::not_found : Code::io_error;
  return make_error(code, "{}: {}", path.string(), std::strerror(error));
}

// Closes the descriptor on every way out; the mapping outlives it.
struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

}  // namespace

Result<MappedFile> MappedFile::open(const std::filesystem::path& path) {
  // Without O_NONBLOCK a named pipe would wait for a writer; it changes nothing for regular files.
  const Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file.fd < 0) return system_error(path, errno);
  struct stat info {};
  if (::fstat(file.fd, &info) != 0) return system_error(path, errno);
  if (!S_ISREG(info.st_mode)) return make_error(Code::io_error, "{}: not a regular file", path.string());
  if (info.st_size == 0) return make_error(Code::corrupt_file, "{}: the file is empty", path.string());
  const auto size_bytes = static_cast<size_t>(info.st_size);
  void* data = ::mmap(nullptr, size_bytes, PROT_READ, MAP_PRIVATE, file.fd, 0);
  if (data == MAP_FAILED) return system_error(path, errno);
  return MappedFile(static_cast<const std::byte*>(data), size_bytes);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_bytes_(std::exchange(other.size_bytes_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_bytes_, other.size_bytes_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_bytes_);
}

}  // namespace blockdraft
