// A CUDA card and the stream that everything of one engine runs on. Defined in builds with CUDA only (base/has_cuda.h);
// this header needs no toolkit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "blockdraft/result.h"

struct CUevent_st;   // what a cudaEvent_t points to
struct CUstream_st;  // what a cudaStream_t points to

namespace blockdraft {

// Used by one thread at a time. Work is queued on the stream and is done when synchronize() returns. A CUDA call that
// fails makes no noise where it is made: the first failure since the last synchronize() is that one's error, with the
// name of the operation.
class CudaDevice {
 public:
  static constexpr int kMinMajor = 8;  // compute capability 8.0: BF16 matrix instructions

  // Errors: not_found (no driver; no card of this index), unsupported (a driver too old, a card below 8.0).
  static Result<std::unique_ptr<CudaDevice>> open(int index);
  ~CudaDevice();
  CudaDevice(const CudaDevice&) = delete;
  CudaDevice& operator=(const CudaDevice&) = delete;

  int index() const { return index_; }
  const std::string& name() const { return name_; }  // "NVIDIA H200"
  int num_multiprocessors() const { return num_multiprocessors_; }
  int compute_capability() const { return compute_capability_; }  // 90 for 9.0
  CUstream_st* stream() const { return stream_; }

  struct Memory {
    size_t free = 0;
    size_t total = 0;
  };
  Memory memory();  // bytes

  // Makes this card the calling thread's. open() did so for its own thread; another one calls it before its first op.
  void make_current();

  // On the stream. Copies of memory that is not pinned (Buffer::allocate_pinned) have read it when they return.
  void copy_to_device(void* device, const void* host, size_t size_bytes, const char* what);
  void copy_to_host(void* host, const void* device, size_t size_bytes, const char* what);
  void copy_on_device(void* to, const void* from, size_t size_bytes, const char* what);
  void fill(void* device, uint8_t value, size_t size_bytes, const char* what);

  // While it skips, nothing is queued: code that queues work can be gone through for its side effects on the CPU, which
  // are the same. Its results then come from elsewhere (a graph), or matter to nobody (measuring scratch memory).
  void set_skips(bool skips) { skips_ = skips; }
  bool skips() const { return skips_; }
  // Skips because a graph has the work: who only queues, and sends nothing, need not go through it at all.
  void set_repeats(bool repeats) { skips_ = repeats_ = repeats; }
  bool repeats() const { return repeats_; }

  // Points in time on the stream, in graphs too. mark() is queued; once the stream is done, elapsed_us() tells how long
  // after mark `from` mark `to` was reached.
  static constexpr int kMarks = 4;
  void mark(int index);
  float elapsed_us(int from, int to);

  // Waits for the stream. Errors: io_error, naming the first operation that failed; where a kernel failed while it ran,
  // the operation is only known to be one of those since the last synchronize(), and the card is lost to this process.
  Status synchronize();

  // The same, but an error is left for the next synchronize().
  void wait();

  // Keeps a failed call (a cudaError_t) for the next synchronize(). `what` is a literal.
  void note(int error, const char* what) {
    if (error != 0 && first_error_ == 0) {
      first_error_ = error;
      failed_operation_ = what;
    }
  }

 private:
  CudaDevice() = default;

  int index_ = 0;
  std::string name_;
  int num_multiprocessors_ = 0;
  int compute_capability_ = 0;
  CUstream_st* stream_ = nullptr;
  CUevent_st* marks_[kMarks] = {};
  bool skips_ = false;
  bool repeats_ = false;
  int first_error_ = 0;
  const char* failed_operation_ = nullptr;
};

}  // namespace blockdraft
