#include "cli/roofline.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <vector>

#include "base/thread_pool.h"
#include "base/timer.h"
#include "cli/peak.h"

namespace blockdraft {
namespace {

using WordVector = uint64_t __attribute__((vector_size(16)));

constexpr double kSecondsEach = 0.2;
constexpr int kRunsAtLeast = 5;

// Results go here, so that the work is not optimized away.
volatile uint64_t read_sink = 0;
volatile float flops_sink = 0;

// Seconds of the fastest run.
template <class Work>
double best_seconds(const Work& work) {
  work();  // wakes the threads and fills the caches
  double best = std::numeric_limits<double>::max();
  const Timer all;
  for (int run = 0; run < kRunsAtLeast || all.elapsed_s() < kSecondsEach; ++run) {
    const Timer timer;
    work();
    best = std::min(best, timer.elapsed_s());
  }
  return best;
}

// Eight sums, so that no addition waits for the one before.
uint64_t sum_words(const WordVector* words, size_t count) {
  constexpr size_t kSums = 8;
  WordVector sums[kSums] = {};
  for (size_t i = 0; i + kSums <= count; i += kSums) {
    for (size_t j = 0; j < kSums; ++j) sums[j] += words[i + j];
  }
  WordVector total = {};
  for (const WordVector& sum : sums) total += sum;
  return total[0] + total[1];
}

double measure_read(ThreadPool& pool, int64_t buffer_bytes) {
  constexpr size_t kWordsOfTask = 4096;  // 64 KiB
  const size_t tasks = std::max<size_t>(1, static_cast<size_t>(buffer_bytes) / (kWordsOfTask * sizeof(WordVector)));
  const std::vector<WordVector> buffer(tasks * kWordsOfTask, WordVector{1, 1});
  std::vector<uint64_t> sums(tasks);
  const double seconds = best_seconds([&] {
    pool.parallel_for(static_cast<int64_t>(tasks), [&](int64_t task, int) {
      const size_t index = static_cast<size_t>(task);
      sums[index] = sum_words(buffer.data() + index * kWordsOfTask, kWordsOfTask);
    });
  });
  for (const uint64_t sum : sums) read_sink = read_sink + sum;
  return static_cast<double>(buffer.size() * sizeof(WordVector)) / seconds;
}

double measure_flops(ThreadPool& pool, CpuIsa isa) {
  // The same amount for each thread; which one takes it is the pool's business.
  const int64_t tasks = int64_t{pool.num_threads()} * 4;
  std::vector<PeakWork> work(static_cast<size_t>(tasks));
  const double seconds = best_seconds([&] {
    pool.parallel_for(tasks, [&](int64_t task, int) { work[static_cast<size_t>(task)] = multiply_and_add(isa); });
  });
  double flops = 0;
  for (const PeakWork& one : work) {
    flops_sink = flops_sink + one.result;
    flops += static_cast<double>(one.flops);
  }
  return flops / seconds;
}

}  // namespace

MachineLimits measure_limits(int64_t buffer_bytes, int32_t threads, CpuIsa isa) {
  ThreadPool pool(threads);
  return {measure_read(pool, buffer_bytes), measure_flops(pool, isa), buffer_bytes};
}

PassFloor floor_of(int64_t bytes, int64_t flops, const MachineLimits& limits) {
  return {static_cast<double>(bytes) / limits.read_bytes_per_s, static_cast<double>(flops) / limits.flops_per_s};
}

}  // namespace blockdraft
