#include "base/thread_pool.h"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "base/check.h"

namespace blockdraft {

namespace {
// An op inside a cycle follows the one before within microseconds, waking a sleeping thread costs tens of them: so
// a worker spins for about this many polls before it sleeps.
constexpr int kSpinPolls = 4000;

void pause_briefly() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}
}  // namespace

struct ThreadPool::State {
  std::vector<std::thread> workers;
  int num_threads = 1;

  // The job. Written while no worker runs; published by the increment of `generation`.
  const TaskRef* task = nullptr;
  int64_t count = 0;
  std::atomic<int64_t> next{0};
  std::atomic<int> running{0};
  std::atomic<uint64_t> generation{0};
  std::atomic<bool> stopping{false};

  std::mutex mutex;
  std::condition_variable wake;
  int sleeping = 0;  // guarded by mutex

  void work(int thread) {
    for (int64_t index = next.fetch_add(1); index < count; index = next.fetch_add(1)) (*task)(index, thread);
  }

  void wait_for_job(uint64_t seen) {
    for (int poll = 0; poll < kSpinPolls; ++poll) {
      if (generation.load() != seen) return;
      pause_briefly();
    }
    std::unique_lock lock(mutex);
    ++sleeping;
    wake.wait(lock, [&] { return generation.load() != seen; });
    --sleeping;
  }

  void worker_loop(int thread) {
    uint64_t seen = 0;
    while (true) {
      wait_for_job(seen);
      ++seen;
      if (stopping.load()) return;
      work(thread);
      running.fetch_sub(1);
    }
  }

  void publish() {
    {
      // Under the mutex, so that no worker can check the generation and fall asleep in between.
      const std::lock_guard lock(mutex);
      generation.fetch_add(1);
      if (sleeping == 0) return;
    }
    wake.notify_all();
  }
};

ThreadPool::ThreadPool(int num_threads) : state_(std::make_unique<State>()) {
  CHECK(num_threads >= 0);
  if (num_threads == 0) num_threads = static_cast<int>(std::thread::hardware_concurrency());
  state_->num_threads = num_threads < 1 ? 1 : num_threads;
  for (int thread = 1; thread < state_->num_threads; ++thread) {
    state_->workers.emplace_back([state = state_.get(), thread] { state->worker_loop(thread); });
  }
}

ThreadPool::~ThreadPool() {
  state_->stopping.store(true);
  state_->publish();
  for (std::thread& worker : state_->workers) worker.join();
}

int ThreadPool::num_threads() const { return state_->num_threads; }

void ThreadPool::parallel_for(int64_t count, TaskRef task) {
  State& state = *state_;
  if (count <= 1 || state.num_threads == 1) {
    for (int64_t index = 0; index < count; ++index) task(index, 0);
    return;
  }
  state.task = &task;
  state.count = count;
  state.next.store(0);
  state.running.store(state.num_threads - 1);
  state.publish();
  state.work(0);
  // Workers hold at most one task each now; with fewer cores than threads they may not even be scheduled.
  for (int poll = 0; state.running.load() > 0; ++poll) {
    if (poll < kSpinPolls) {
      pause_briefly();
    } else {
      std::this_thread::yield();
    }
  }
}

}  // namespace blockdraft
