// What every op gets: where it runs, its threads, its instruction set, and scratch memory.
#pragma once

#include "base/cpu_isa.h"
#include "base/thread_pool.h"
#include "tensor/buffer.h"
#include "tensor/cuda_device.h"

namespace blockdraft {

class CublasLt;
class HostLink;
class Recorder;

// Borrowed pointers; one Context serves one engine thread.
struct Context {
  ThreadPool* threads = nullptr;
  Arena* arena = nullptr;
  CpuIsa isa = CpuIsa::portable;  // with another one, other bits come out of the ops, from each the same ones always
  Recorder* recorder = nullptr;   // keeps what a pass computes on its way (tensor/recorder.h); usually there is none

  // Null: the CPU. Else views, batches and the arena are memory of this card, and these two are there as well.
  CudaDevice* cuda = nullptr;
  HostLink* link = nullptr;    // what the CPU and the card tell each other (tensor/host_link.h)
  Arena* cpu_arena = nullptr;  // for arrays of the CPU
  // Only while a pass over a prompt's grid is queued, and there only if the library was found: what takes the products
  // of its kPromptRows rows (ops/linear.h).
  CublasLt* prompt_products = nullptr;
};

// Whether what is queued now never runs (CudaDevice::skips).
inline bool is_skipped(const Context& context) { return context.cuda != nullptr && context.cuda->skips(); }

// Whether a graph has the work that is queued now (CudaDevice::repeats).
inline bool is_repeated(const Context& context) { return context.cuda != nullptr && context.cuda->repeats(); }

// For arrays that the CPU fills or looks at.
inline Arena& host_arena(const Context& context) {
  return context.cuda == nullptr ? *context.arena : *context.cpu_arena;
}

}  // namespace blockdraft
