#include "tensor/host_link.h"

#include <cstring>

#include "base/check.h"
#include "base/error.h"
#include "tensor/cuda_device.h"

namespace blockdraft {
namespace {

size_t padded(size_t size_bytes) {
  return (size_bytes + HostLink::kAlignment - 1) / HostLink::kAlignment * HostLink::kAlignment;
}

std::byte* at(Buffer& buffer, size_t offset) { return static_cast<std::byte*>(buffer.data()) + offset; }

}  // namespace

Result<HostLink> HostLink::create(CudaDevice& device, size_t send_bytes, size_t receive_bytes) {
  HostLink link(device);
  BLOCKDRAFT_ASSIGN(link.send_pinned_, Buffer::allocate_pinned(device, send_bytes, "numbers for the card"));
  BLOCKDRAFT_ASSIGN(link.send_device_, Buffer::allocate_on(device, send_bytes, "numbers for the card"));
  BLOCKDRAFT_ASSIGN(link.receive_pinned_, Buffer::allocate_pinned(device, receive_bytes, "numbers of the card"));
  BLOCKDRAFT_ASSIGN(link.receive_device_, Buffer::allocate_on(device, receive_bytes, "numbers of the card"));
  return link;
}

Status HostLink::begin() {
  receipts_.clear();  // nobody waits for them any more
  if (is_read_) BLOCKDRAFT_TRY(finish());
  sent_ = 0;
  waits_ = is_queued_ = false;
  received_ = finished_ = 0;
  return {};
}

const void* HostLink::send(const void* data, size_t size_bytes) {
  CHECK(sent_ + padded(size_bytes) <= send_pinned_.size_bytes());
  const size_t offset = sent_;
  sent_ += padded(size_bytes);
  if (size_bytes > 0) std::memcpy(at(send_pinned_, offset), data, size_bytes);
  if (!waits_) {
    device_->copy_to_device(at(send_device_, offset), at(send_pinned_, offset), size_bytes, "numbers for the card");
    is_read_ = true;
  }
  return at(send_device_, offset);
}

void HostLink::let_sending_wait() {
  CHECK(!waits_);
  waits_ = true;
}

void HostLink::queue_sending(size_t size_bytes) {
  CHECK(waits_ && sent_ + size_bytes <= send_pinned_.size_bytes());
  device_->copy_to_device(at(send_device_, sent_), at(send_pinned_, sent_), size_bytes, "numbers for the card");
  is_read_ = true;
}

void HostLink::queue_receiving() {
  device_->copy_to_host(at(receive_pinned_, finished_), at(receive_device_, finished_), received_ - finished_,
                        "numbers of the card");
  is_queued_ = true;
}

void HostLink::send_no_more() { waits_ = false; }

void* HostLink::receive(void* host, size_t size_bytes) {
  CHECK(received_ + padded(size_bytes) <= receive_pinned_.size_bytes());
  const size_t offset = received_;
  received_ += padded(size_bytes);
  receipts_.push_back({host, offset, size_bytes});
  return at(receive_device_, offset);
}

Status HostLink::finish() {
  if (!is_queued_) queue_receiving();
  is_queued_ = false;
  const Status done = device_->synchronize();
  for (const Receipt& receipt : receipts_) {
    if (!done) break;
    if (receipt.size_bytes > 0) std::memcpy(receipt.host, at(receive_pinned_, receipt.offset), receipt.size_bytes);
  }
  receipts_.clear();
  finished_ = received_;
  is_read_ = false;
  return done;
}

}  // namespace blockdraft
