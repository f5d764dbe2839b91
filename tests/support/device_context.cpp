#include "support/device_context.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "base/has_cuda.h"
#include "tensor/cuda_device.h"
#include "tensor/host_link.h"

namespace blockdraft::test {
namespace {

bool is_contiguous(const ConstTensorView& view) {
  const int64_t rows = view.dim(0);
  return rows <= 1 || view.row_stride * rows == view.shape.num_elements();
}

constexpr size_t kLinkBytes = size_t{16} << 20;  // each way; batches and tokens of a case take kilobytes

}  // namespace

Result<std::unique_ptr<DeviceContext>> DeviceContext::create(CudaDevice* card, ThreadPool& threads, CpuIsa isa,
                                                             size_t arena_bytes) {
  std::unique_ptr<DeviceContext> device(new DeviceContext());
  device->arenas_.reserve(2);  // the context keeps addresses
  BLOCKDRAFT_ASSIGN(Buffer memory, Buffer::allocate(arena_bytes, "scratch"));
  device->arenas_.emplace_back(std::move(memory));
  device->context_.threads = &threads;
  device->context_.arena = &device->arenas_.front();
  device->context_.isa = isa;
  if (card != nullptr) BLOCKDRAFT_TRY(device->use_card(*card));
  return device;
}

Status DeviceContext::use_card(CudaDevice& card) {
  if constexpr (kHasCuda) {
    BLOCKDRAFT_ASSIGN(HostLink link, HostLink::create(card, kLinkBytes, kLinkBytes));
    link_ = std::make_shared<HostLink>(std::move(link));
    BLOCKDRAFT_ASSIGN(Buffer memory, Buffer::allocate_on(card, arenas_.front().size_bytes(), "scratch of the card"));
    arenas_.emplace_back(std::move(memory));
    context_.cuda = &card;
    context_.link = link_.get();
    context_.cpu_arena = &arenas_.front();
    context_.arena = &arenas_.back();
    context_.isa = CpuIsa::portable;
  }
  return {};
}

WeightLoading DeviceContext::loading() const { return {.isa = context_.isa, .cuda = context_.cuda}; }

Status DeviceContext::begin_pass() {
  if constexpr (kHasCuda) {
    if (on_card()) return link_->begin();
  }
  return {};
}

Status DeviceContext::finish_pass() { return synchronize(context_); }

Result<const void*> DeviceContext::place_bytes(const void* data, size_t size_bytes) {
  if constexpr (kHasCuda) {
    if (on_card()) {
      BLOCKDRAFT_ASSIGN(Buffer memory, Buffer::allocate_on(*context_.cuda, size_bytes, "input of a test"));
      context_.cuda->copy_to_device(memory.data(), data, size_bytes, "input of a test");
      BLOCKDRAFT_TRY(context_.cuda->synchronize());
      placed_.push_back(std::move(memory));
      return static_cast<const void*>(placed_.back().data());
    }
  }
  return data;
}

Result<ConstTensorView> DeviceContext::place(const ConstTensorView& values) {
  CHECK(is_contiguous(values));
  ConstTensorView placed = values;
  BLOCKDRAFT_ASSIGN(placed.data,
                    place_bytes(values.data, static_cast<size_t>(values.shape.num_elements()) * size_of(values.dtype)));
  return placed;
}

Result<WeightView> DeviceContext::place(const WeightView& weight) {
  CHECK(weight.row_scales == nullptr && weight.block_scales == nullptr && weight.group_scales == nullptr &&
        weight.bias == nullptr && !weight.is_packed);
  WeightView placed = weight;
  BLOCKDRAFT_ASSIGN(const void* data, place_bytes(weight.data, static_cast<size_t>(weight.size_bytes())));
  placed.data = static_cast<const std::byte*>(data);
  return placed;
}

Status DeviceContext::append(std::vector<float>& to, const TensorView& values) {
  CHECK(is_contiguous(values) && values.dtype == DType::f32);
  const size_t old = to.size();
  const auto count = static_cast<size_t>(values.shape.num_elements());
  to.resize(old + count);
  if constexpr (kHasCuda) {
    if (on_card()) {
      context_.cuda->copy_to_host(to.data() + old, values.data, count * sizeof(float), "result of a test");
      return context_.cuda->synchronize();
    }
  }
  std::copy_n(values.f32(), count, to.begin() + static_cast<std::ptrdiff_t>(old));
  return {};
}

}  // namespace blockdraft::test
