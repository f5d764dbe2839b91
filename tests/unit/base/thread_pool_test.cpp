#include "base/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/cpu_cores.h"

namespace blockdraft {
namespace {

class ThreadPoolOf : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Threads, ThreadPoolOf, ::testing::Values(1, 2, 3, 4, 9));

TEST_P(ThreadPoolOf, CallsEveryIndexOnce) {
  ThreadPool pool(GetParam());
  EXPECT_EQ(pool.num_threads(), GetParam());
  for (const int64_t count : {0, 1, 2, 3, 7, 64, 1000}) {
    std::vector<int> calls(static_cast<size_t>(count));  // plain ints: two calls of one index would be a data race
    std::atomic<bool> thread_in_range = true;
    pool.parallel_for(count, [&](int64_t index, int thread) {
      ++calls[static_cast<size_t>(index)];
      if (thread < 0 || thread >= GetParam()) thread_in_range = false;
    });
    EXPECT_EQ(std::count(calls.begin(), calls.end(), 1), count);
    EXPECT_TRUE(thread_in_range);
  }
}

TEST_P(ThreadPoolOf, CountsHandOffs) {
  ThreadPool pool(GetParam());
  for (const int64_t count : {0, 1, 2, 50}) pool.parallel_for(count, [](int64_t, int) {});
  EXPECT_EQ(pool.hand_offs(), GetParam() == 1 ? 0 : 2) << "one index, or one thread, needs nobody else";
}

TEST_P(ThreadPoolOf, TheThreadNumberIsHeldByOneThreadAtATime) {
  ThreadPool pool(GetParam());
  std::vector<int64_t> sums(static_cast<size_t>(GetParam()));  // a data race if two threads had one number
  for (int round = 0; round < 200; ++round) {
    pool.parallel_for(50, [&](int64_t index, int thread) { sums[static_cast<size_t>(thread)] += index; });
  }
  EXPECT_EQ(std::accumulate(sums.begin(), sums.end(), int64_t{0}), 200 * 49 * 50 / 2);
}

TEST_P(ThreadPoolOf, WhatTasksWroteIsSeenByTheCallerAndTheNextJob) {
  ThreadPool pool(GetParam());
  std::vector<int64_t> values(40, 1);
  for (int round = 0; round < 30; ++round) {
    std::vector<int64_t> next(40);
    pool.parallel_for(40, [&](int64_t i, int) {
      next[static_cast<size_t>(i)] = values[static_cast<size_t>(i)] + values[static_cast<size_t>((i + 1) % 40)];
    });
    values = next;
  }
  EXPECT_EQ(values, std::vector<int64_t>(40, int64_t{1} << 30));
}

TEST_P(ThreadPoolOf, ManyShortJobs) {
  constexpr int kJobs = 100000;
  ThreadPool pool(GetParam());
  std::atomic<int64_t> calls = 0;
  for (int job = 0; job < kJobs; ++job) {
    pool.parallel_for(job % 7, [&](int64_t, int) { calls.fetch_add(1, std::memory_order_relaxed); });
  }
  int64_t expected = 0;
  for (int job = 0; job < kJobs; ++job) expected += job % 7;
  EXPECT_EQ(calls.load(), expected);
}

TEST_P(ThreadPoolOf, WorkersThatFellAsleepAreWoken) {
  ThreadPool pool(GetParam());
  std::atomic<int> calls = 0;
  for (int round = 0; round < 10; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    pool.parallel_for(16, [&](int64_t, int) { ++calls; });
  }
  EXPECT_EQ(calls.load(), 160);
}

TEST_P(ThreadPoolOf, EndsAtOnceWhileIdleOrAsleep) {
  for (int round = 0; round < 50; ++round) {
    ThreadPool pool(GetParam());
    if (round % 2 == 1) pool.parallel_for(8, [](int64_t, int) {});
    if (round % 10 == 9) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

TEST(ThreadPool, AllThreadsTakePart) {
  ThreadPool pool(4);
  std::vector<int64_t> tasks(4);
  pool.parallel_for(40, [&](int64_t, int thread) {
    ++tasks[static_cast<size_t>(thread)];
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  });
  for (const int64_t count : tasks) EXPECT_GT(count, 0);
}

TEST(ThreadPool, ZeroMeansOneThreadACore) {
  const ThreadPool pool;
  const int cores = static_cast<int>(available_cores().size());
  EXPECT_EQ(pool.num_threads(), std::min(cores, processor_quota().value_or(cores)));
}

TEST(ThreadPool, PinnedThreadsDoTheSame) {
  const int cores = static_cast<int>(available_cores().size());
  for (const int num_threads : {cores, cores + 1, 2 * cores}) {
    ThreadPool pool(num_threads, true);
    std::vector<int> calls(1000);
    for (int round = 0; round < 100; ++round) {
      pool.parallel_for(1000, [&](int64_t index, int) { ++calls[static_cast<size_t>(index)]; });
    }
    EXPECT_EQ(calls, std::vector<int>(1000, 100));
  }
}

// A worker may run on its core only, if there are as many threads as cores.
TEST(ThreadPool, WorkersStayOnTheirCores) {
  const std::vector<Core> cores = available_cores();
  if (cores.size() == 1) GTEST_SKIP() << "one core: a pool of one thread has no worker to pin";
  ThreadPool pool(static_cast<int>(cores.size()), true);
  std::vector<std::vector<Core>> seen(cores.size());
  std::atomic<int> arrived = 0;
  pool.parallel_for(static_cast<int64_t>(cores.size()), [&](int64_t, int thread) {
    seen[static_cast<size_t>(thread)] = available_cores();
    // Nobody takes two: each thread has one.
    for (++arrived; arrived < static_cast<int>(cores.size());) std::this_thread::yield();
  });
  for (size_t thread = 1; thread < cores.size(); ++thread) {
    EXPECT_EQ(seen[thread], std::vector<Core>{cores[thread]}) << "thread " << thread;
  }
  EXPECT_EQ(seen[0], cores) << "the calling thread is the caller's";
}

TEST(ThreadPool, PinningIsSwitchedByTheEnvironment) {
  const char* set = std::getenv("BLOCKDRAFT_PIN_THREADS");
  const std::string before = set == nullptr ? "" : set;  // empty is as good as not set
  const auto chosen = [](const char* value) {
    ::setenv("BLOCKDRAFT_PIN_THREADS", value, 1);
    return choose_thread_pinning();
  };
  EXPECT_TRUE(chosen("").value());
  EXPECT_TRUE(chosen("1").value());
  EXPECT_FALSE(chosen("0").value());
  EXPECT_EQ(chosen("no").error().message, "BLOCKDRAFT_PIN_THREADS is 'no', expected 0 or 1");
  ::setenv("BLOCKDRAFT_PIN_THREADS", before.c_str(), 1);
}

}  // namespace
}  // namespace blockdraft
