// Owned memory, and the arena that activations come from.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "blockdraft/result.h"
#include "tensor/tensor_view.h"

namespace blockdraft {

class CudaDevice;

// Zeroed memory aligned to 256 bytes at least. Moves only.
class Buffer {
 public:
  Buffer() = default;
  // The CPU's. Pages that are never touched take no physical memory.
  // Errors: out_of_memory, naming `what` and the size asked for.
  static Result<Buffer> allocate(size_t size_bytes, const char* what);
  // A card's, and memory of the CPU that its copies reach without the CPU's help. Zeroed on the device's stream; give
  // either back only when the stream is done with it. Builds with CUDA only. Errors: out_of_memory, naming `what`, the
  // size asked for and what is free.
  static Result<Buffer> allocate_on(CudaDevice& device, size_t size_bytes, const char* what);
  static Result<Buffer> allocate_pinned(CudaDevice& device, size_t size_bytes, const char* what);

  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  ~Buffer();

  void* data() { return data_; }
  const void* data() const { return data_; }
  float* f32() { return static_cast<float*>(data_); }
  const float* f32() const { return static_cast<const float*>(data_); }
  size_t size_bytes() const { return size_bytes_; }

 private:
  using Release = void (*)(void* data, size_t size_bytes);

  void* data_ = nullptr;
  size_t size_bytes_ = 0;
  Release release_ = nullptr;
};

// On a card if one is given, else the CPU's.
Result<Buffer> allocate_for(CudaDevice* device, size_t size_bytes, const char* what);

// A bump allocator over one buffer of either kind, sized at start-up: nothing is allocated inside a cycle.
class Arena {
 public:
  static constexpr size_t kAlignment = 256;  // what a card wants

  explicit Arena(Buffer buffer) : buffer_(std::move(buffer)), capacity_(buffer_.size_bytes()) {}
  // Without memory: its addresses mean nothing, and peak_bytes() is what code needs that is gone through for that.
  static Arena measuring();

  // Aligned to kAlignment, uninitialized, valid until the enclosing ArenaScope ends. Running out is a bug of the plan.
  TensorView take(DType dtype, Shape shape);
  TensorView take_f32(Shape shape) { return take(DType::f32, shape); }
  int32_t* take_i32(int64_t count);

  size_t used_bytes() const { return used_; }
  size_t peak_bytes() const { return peak_; }
  size_t size_bytes() const { return buffer_.size_bytes(); }

 private:
  friend class ArenaScope;
  std::byte* take_bytes(size_t size_bytes);

  Buffer buffer_;
  size_t capacity_ = 0;
  size_t used_ = 0;
  size_t peak_ = 0;
};

// Gives back at its end what was taken since its beginning.
class ArenaScope {
 public:
  explicit ArenaScope(Arena& arena) : arena_(arena), mark_(arena.used_) {}
  ~ArenaScope() { arena_.used_ = mark_; }
  ArenaScope(const ArenaScope&) = delete;
  ArenaScope& operator=(const ArenaScope&) = delete;

 private:
  Arena& arena_;
  size_t mark_;
};

// Bytes that take_f32 of so many elements uses up, and take of a smaller type at most.
inline size_t arena_bytes_f32(int64_t elements) {
  const size_t size_bytes = static_cast<size_t>(elements) * sizeof(float);
  return (size_bytes + Arena::kAlignment - 1) / Arena::kAlignment * Arena::kAlignment;
}

}  // namespace blockdraft
