// Where a test computes: a Context with all that it needs, on the CPU or on a card, and copies to there and back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/thread_pool.h"
#include "blockdraft/result.h"
#include "nn/weight_store.h"
#include "tensor/buffer.h"
#include "tensor/context.h"
#include "tensor/tensor_view.h"
#include "tensor/weight_view.h"

namespace blockdraft::test {

// Used by one thread at a time. Errors of all functions: out_of_memory, and io_error of the card.
class DeviceContext {
 public:
  // Null: the CPU, with the kernels for `isa`. Device and threads are borrowed and outlive this. On a card what is left
  // to the CPU takes the portable kernels.
  static Result<std::unique_ptr<DeviceContext>> create(CudaDevice* card, ThreadPool& threads, CpuIsa isa,
                                                       size_t arena_bytes);

  Context& context() { return context_; }
  bool on_card() const { return context_.cuda != nullptr; }
  // How models for this context are loaded.
  WeightLoading loading() const;

  // Around the calls of a pass: before, and when what it gave the CPU is wanted. Nothing to do on the CPU.
  Status begin_pass();
  Status finish_pass();

  // The data where ops find it: itself on the CPU, where it must outlive its use; else a copy that lives as long as
  // this. Of a weight the codes alone, which must have no scales and no bias.
  Result<ConstTensorView> place(const ConstTensorView& values);
  Result<WeightView> place(const WeightView& weight);

  // Of a view without gaps that an op of this context wrote.
  Status append(std::vector<float>& to, const TensorView& values);

 private:
  DeviceContext() = default;
  Status use_card(CudaDevice& card);
  Result<const void*> place_bytes(const void* data, size_t size_bytes);

  Context context_;
  std::vector<Arena> arenas_;  // the ops' own; on a card also the CPU's
  std::shared_ptr<HostLink> link_;
  std::vector<Buffer> placed_;
};

}  // namespace blockdraft::test
