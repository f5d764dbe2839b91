#include "base/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdlib>
#include <mutex>
#include <string_view>
#include <thread>
#include <vector>

#include "base/check.h"
#include "base/cpu_cores.h"
#include "base/error.h"

namespace blockdraft {

namespace {

// An op inside a cycle follows the one before within microseconds, and waking a sleeping thread costs tens of them: so
// a worker polls for a while before it sleeps. It does not yield in between: a thread that mostly yields looks idle to
// the scheduler, which then leaves it on the core of the thread that it should be helping.
constexpr int kPolls = 4000;

constexpr size_t kCacheLine = 64;  // what threads write often lies apart from what they read

void pause_briefly() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// Polls until done() or patience ends; whether it is done.
template <class Done>
bool poll(const Done& done) {
  for (int i = 0; i < kPolls; ++i) {
    if (done()) return true;
    pause_briefly();
  }
  return false;
}

}  // namespace

struct ThreadPool::State {
  std::vector<std::thread> workers;
  int num_threads = 1;
  int64_t hand_offs = 0;

  // The job. Written only while the gate is closed and no worker is inside.
  const TaskRef* task = nullptr;
  int64_t count = 0;
  alignas(kCacheLine) std::atomic<int64_t> next{0};

  // Workers inside the job, with kClosed added once nobody may enter any more. A worker that comes late, because it
  // slept or had no core, is not waited for.
  static constexpr uint32_t kClosed = 1u << 31;
  alignas(kCacheLine) std::atomic<uint32_t> gate{kClosed};

  alignas(kCacheLine) std::atomic<uint64_t> generation{0};  // counts jobs: the signal that there is one
  std::atomic<bool> stopping{false};
  std::atomic<int> sleeping{0};
  std::mutex mutex;
  std::condition_variable wake;

  void work(int thread) {
    for (int64_t index = next.fetch_add(1); index < count; index = next.fetch_add(1)) (*task)(index, thread);
  }

  bool enter() {
    uint32_t inside = gate.load();
    while ((inside & kClosed) == 0) {
      if (gate.compare_exchange_weak(inside, inside + 1)) return true;
    }
    return false;
  }

  void wait_for_job(uint64_t seen) {
    const auto signalled = [&] { return generation.load() != seen; };
    if (poll(signalled)) return;
    std::unique_lock lock(mutex);
    sleeping.fetch_add(1);
    wake.wait(lock, signalled);
    sleeping.fetch_sub(1);
  }

  void worker_loop(int thread) {
    uint64_t seen = 0;
    while (true) {
      wait_for_job(seen);
      seen = generation.load();
      if (stopping.load()) return;
      if (!enter()) continue;
      work(thread);
      gate.fetch_sub(1);
    }
  }

  void signal() {
    generation.fetch_add(1);
    // Either a worker that is about to sleep sees the new generation, or it is counted here.
    if (sleeping.load() == 0) return;
    // It counts itself under the mutex and gives the mutex up by falling asleep: from here on it can be woken.
    { const std::lock_guard lock(mutex); }
    wake.notify_all();
  }

  void close_and_wait() {
    gate.fetch_or(kClosed);
    const auto empty = [&] { return gate.load() == kClosed; };
    // A worker that is still inside may have lost its core to this very thread.
    while (!poll(empty)) std::this_thread::yield();
  }
};

int resolve_threads(int num_threads) {
  CHECK(num_threads >= 0);
  if (num_threads > 0) return num_threads;
  const int cores = static_cast<int>(available_cores().size());
  return std::min(cores, processor_quota().value_or(cores));
}

Result<bool> choose_thread_pinning() {
  const char* value = std::getenv("BLOCKDRAFT_PIN_THREADS");
  if (value == nullptr || *value == '\0' || std::string_view(value) == "1") return true;
  if (std::string_view(value) == "0") return false;
  return make_error(Code::invalid_argument, "BLOCKDRAFT_PIN_THREADS is '{}', expected 0 or 1", value);
}

ThreadPool::ThreadPool(int num_threads, bool pin_threads) : state_(std::make_unique<State>()) {
  state_->num_threads = resolve_threads(num_threads);
  for (int thread = 1; thread < state_->num_threads; ++thread) {
    state_->workers.emplace_back([state = state_.get(), thread] { state->worker_loop(thread); });
  }
  if (!pin_threads) return;
  // A pool that leaves cores to others must not choose which: another one would choose the same.
  const std::vector<Core> cores = available_cores();
  if (cores.size() != static_cast<size_t>(state_->num_threads)) return;
  for (size_t i = 0; i < state_->workers.size(); ++i) pin(state_->workers[i], cores[i + 1]);
}

ThreadPool::~ThreadPool() {
  state_->stopping.store(true);
  state_->signal();
  for (std::thread& worker : state_->workers) worker.join();
}

int ThreadPool::num_threads() const { return state_->num_threads; }

int64_t ThreadPool::hand_offs() const { return state_->hand_offs; }

void ThreadPool::parallel_for(int64_t count, TaskRef task) {
  State& state = *state_;
  if (count <= 1 || state.num_threads == 1) {
    for (int64_t index = 0; index < count; ++index) task(index, 0);
    return;
  }
  ++state.hand_offs;
  state.task = &task;
  state.count = count;
  state.next.store(0);
  state.gate.store(0);
  state.signal();
  state.work(0);
  state.close_and_wait();
}

}  // namespace blockdraft
