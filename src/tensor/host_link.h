// What the CPU and a card tell each other: numbers of a batch one way, chosen tokens the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include "base/has_cuda.h"
#include "blockdraft/result.h"
#include "tensor/buffer.h"
#include "tensor/context.h"
#include "tensor/read_back.h"

namespace blockdraft {

// Two stretches of memory that each exist twice, pinned on the CPU and on the card. Arrays take their places one after
// the other from begin() on, so a cycle of the same shape finds its arrays at the same addresses: that is what a graph
// of it needs. Builds with CUDA only; everything else goes by the functions at the end of this file.
class HostLink {
 public:
  static constexpr size_t kAlignment = 256;

  // Most bytes on their way between two begin(). Errors: out_of_memory. Borrows the device.
  static Result<HostLink> create(CudaDevice& device, size_t send_bytes, size_t receive_bytes);

  // All places are free again. Waits for the card if it may still read them.  Errors: those of synchronize().
  Status begin();
  // The place of a copy on the card. It is sent at once, unless sending waits.
  const void* send(const void* data, size_t size_bytes);
  // The place on the card of what `host` gets with the next finish().
  void* receive(void* host, size_t size_bytes);
  // Waits for the card; then all that was to be received is where it should be.  Errors: those of synchronize(); then
  // it is not, and never will be.
  Status finish();

  // For a graph, which has one copy of each kind. From let_sending_wait() to send_no_more() nothing is sent by itself;
  // queue_sending() queues the copy of the next `size_bytes` of places, whatever they will hold when it runs, and
  // queue_receiving() that of all that is to be received, for finish().
  void let_sending_wait();
  void queue_sending(size_t size_bytes);
  void queue_receiving();
  void send_no_more();
  size_t sent_bytes() const { return sent_; }

 private:
  struct Receipt {
    void* host = nullptr;
    size_t offset = 0;
    size_t size_bytes = 0;
  };
  explicit HostLink(CudaDevice& device) : device_(&device) {}

  CudaDevice* device_;
  Buffer send_pinned_, send_device_, receive_pinned_, receive_device_;
  size_t sent_ = 0;  // bytes of places in use
  bool waits_ = false;
  bool is_read_ = false;  // the card may be reading what was sent
  size_t received_ = 0;
  size_t finished_ = 0;
  bool is_queued_ = false;  // the copy of what is to be received
  std::vector<Receipt> receipts_;
};

// Where ops find an array of the CPU's: there, or on the card. On a CPU the array must outlive the ops.
template <class T>
const T* on_device(const Context& context, std::span<const T> values) {
  if constexpr (kHasCuda) {
    if (context.cuda != nullptr) return static_cast<const T*>(context.link->send(values.data(), values.size_bytes()));
  }
  return values.data();
}

// The same for an array that ops go on to change; on a card it is their copy that they change.
template <class T>
T* on_device(const Context& context, std::span<T> values) requires(!std::is_const_v<T>) {
  return const_cast<T*>(on_device(context, std::span<const T>(values)));  // NOLINT: nobody else has the copy
}

// Where ops write what `values` is to hold after the next synchronize().
template <class T>
T* for_host(const Context& context, std::span<T> values) {
  if constexpr (kHasCuda) {
    if (context.cuda != nullptr) return static_cast<T*>(context.link->receive(values.data(), values.size_bytes()));
  }
  return values.data();
}

// Waits until the arrays of for_host() are there. On a CPU they are.
inline Status synchronize(const Context& context) {
  if constexpr (kHasCuda) {
    if (context.cuda != nullptr) return context.link->finish();
  }
  return {};
}

// What ops wrote, for the CPU to look at: there, or a copy in the CPU's arena that was waited for.
template <class T>
const T* on_host(const Context& context, const T* values, int64_t count) {
  if (context.cuda == nullptr) return values;
  static_assert(sizeof(T) == sizeof(int32_t));
  void* copy = host_arena(context).take_i32(count);
  read_back(*context.cuda, copy, values, static_cast<size_t>(count) * sizeof(T));
  return static_cast<const T*>(copy);
}

}  // namespace blockdraft
