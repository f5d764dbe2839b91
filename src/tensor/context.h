// What every op gets: where it runs, its threads, its instruction set, and scratch memory.
#pragma once

#include "base/cpu_isa.h"
#include "base/thread_pool.h"
#include "tensor/buffer.h"

namespace blockdraft {

class CudaDevice;
class Recorder;

// Borrowed pointers; one Context serves one engine thread.
struct Context {
  ThreadPool* threads = nullptr;
  Arena* arena = nullptr;
  CpuIsa isa = CpuIsa::portable;  // with another one, other bits come out of the ops, from each the same ones always
  Recorder* recorder = nullptr;   // keeps what a pass computes on its way (tensor/recorder.h); usually there is none
  CudaDevice* cuda = nullptr;     // null: the CPU. Else views, batches and the arena are memory of this card
};

}  // namespace blockdraft
