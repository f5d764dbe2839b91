#include "tensor/buffer.h"

#include <limits>
#include <utility>

#include <sys/mman.h>

#include "base/error.h"
#include "base/has_cuda.h"

namespace blockdraft {

Result<Buffer> Buffer::allocate(size_t size_bytes, const char* what) {
  Buffer buffer;
  if (size_bytes == 0) return buffer;
  void* data = ::mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED) {
    return make_error(Code::out_of_memory, "{}: the system refused {} bytes", what, size_bytes);
  }
  buffer.data_ = data;
  buffer.size_bytes_ = size_bytes;
  buffer.release_ = [](void* memory, size_t size) { ::munmap(memory, size); };
  return buffer;
}

Result<Buffer> allocate_for(CudaDevice* device, size_t size_bytes, const char* what) {
  if constexpr (kHasCuda) {
    if (device != nullptr) return Buffer::allocate_on(*device, size_bytes, what);
  }
  CHECK(device == nullptr);
  return Buffer::allocate(size_bytes, what);
}

Buffer::Buffer(Buffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_bytes_(std::exchange(other.size_bytes_, 0)),
      release_(std::exchange(other.release_, nullptr)) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_bytes_, other.size_bytes_);
  std::swap(release_, other.release_);
  return *this;
}

Buffer::~Buffer() {
  if (data_ != nullptr) release_(data_, size_bytes_);
}

Arena Arena::measuring() {
  Arena arena{Buffer{}};
  arena.capacity_ = std::numeric_limits<size_t>::max();
  return arena;
}

std::byte* Arena::take_bytes(size_t size_bytes) {
  const size_t padded = (size_bytes + kAlignment - 1) / kAlignment * kAlignment;
  CHECK(padded <= capacity_ - used_);
  // Of a measuring arena any address but null.
  std::byte* const begin = buffer_.size_bytes() == 0
                               ? reinterpret_cast<std::byte*>(kAlignment)  // NOLINT: nobody reads it
                               : static_cast<std::byte*>(buffer_.data());
  std::byte* address = begin + used_;
  used_ += padded;
  if (used_ > peak_) peak_ = used_;
  return address;
}

TensorView Arena::take(DType dtype, Shape shape) {
  return contiguous_view(take_bytes(static_cast<size_t>(shape.num_elements()) * size_of(dtype)), dtype, shape);
}

int32_t* Arena::take_i32(int64_t count) {
  return reinterpret_cast<int32_t*>(take_bytes(static_cast<size_t>(count) * sizeof(int32_t)));
}

}  // namespace blockdraft
