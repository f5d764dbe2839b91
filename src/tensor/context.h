// What every op gets: where it runs, its threads, and scratch memory.
#pragma once

#include "base/thread_pool.h"
#include "tensor/buffer.h"

namespace blockdraft {

// Borrowed pointers; one Context serves one engine thread.
struct Context {
  ThreadPool* threads = nullptr;
  Arena* arena = nullptr;
};

}  // namespace blockdraft
