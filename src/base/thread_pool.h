// A fixed pool of threads for the loops inside ops.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>

#include "blockdraft/result.h"

namespace blockdraft {

// A reference to a callable, without the allocation of std::function. The callable must outlive the call.
class TaskRef {
 public:
  template <class F, class = std::enable_if_t<!std::is_same_v<std::decay_t<F>, TaskRef>>>
  TaskRef(const F& callable)  // NOLINT(google-explicit-constructor)
      : object_(&callable),
        call_([](const void* object, int64_t index, int thread) { (*static_cast<const F*>(object))(index, thread); }) {}
  void operator()(int64_t index, int thread) const { call_(object_, index, thread); }

 private:
  const void* object_;
  void (*call_)(const void*, int64_t, int);
};

// How many threads a pool asked for `num_threads` has; 0: one for each physical core that the process may use
// (base/cpu_cores.h), no more than its control groups give it time for.
int resolve_threads(int num_threads);

// What the environment variable BLOCKDRAFT_PIN_THREADS says of pinning: 0 or 1; 1 if it is not set.
// Errors: another value.
Result<bool> choose_thread_pinning();

// The calling thread is one of the threads: a pool of 1 starts none. Threads are made in the constructor only.
// Not re-entrant, and used by one thread at a time (one engine owns one pool).
class ThreadPool {
 public:
  // Of resolve_threads(num_threads) threads. pin_threads: if there are as many as available cores, each worker stays on
  // its core; the calling thread is the caller's, and goes where the kernel sends it. With fewer threads, or more,
  // nothing is pinned.
  explicit ThreadPool(int num_threads = 0, bool pin_threads = false);
  ~ThreadPool();

  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int num_threads() const;

  // Calls task(index, thread) once for each index in [0, count), spread over the threads, and returns when all are
  // done. Which thread takes an index is not fixed, so a task's result may depend on its index only; `thread` in
  // [0, num_threads()) picks scratch memory. Allocates nothing.
  void parallel_for(int64_t count, TaskRef task);

  // Calls of parallel_for so far that had work for more than one thread: each costs some microseconds of waiting.
  int64_t hand_offs() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace blockdraft
