#include "cli/roofline.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <vector>

#include "base/thread_pool.h"
#include "base/timer.h"

namespace blockdraft {
namespace {

using FloatVector = float __attribute__((vector_size(16)));
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

// Twelve chains of value * factor + term: enough to hide the latency of both, few enough for 16 registers.
constexpr int kChains = 12;
constexpr int64_t kSteps = 1 << 16;

float multiply_add(FloatVector factor, FloatVector term) {
  FloatVector value[kChains];
  for (int i = 0; i < kChains; ++i) value[i] = term * static_cast<float>(i);
  for (int64_t step = 0; step < kSteps; ++step) {
#pragma GCC unroll 12
    for (int i = 0; i < kChains; ++i) value[i] = value[i] * factor + term;
  }
  FloatVector total = {};
  for (const FloatVector& chain : value) total += chain;
  return total[0] + total[1] + total[2] + total[3];
}

double measure_flops(ThreadPool& pool) {
  // The same amount for each thread; which one takes it is the pool's business.
  const int64_t tasks = int64_t{pool.num_threads()} * 4;
  const FloatVector factor = {0.5F, 0.5F, 0.5F, 0.5F};
  const FloatVector term = {1, 2, 3, 4};
  std::vector<float> sums(static_cast<size_t>(tasks));
  const double seconds = best_seconds([&] {
    pool.parallel_for(tasks, [&](int64_t task, int) { sums[static_cast<size_t>(task)] = multiply_add(factor, term); });
  });
  for (const float sum : sums) flops_sink = flops_sink + sum;
  constexpr int64_t kFlopsOfStep = int64_t{kChains} * 4 * 2;
  return static_cast<double>(tasks * kSteps * kFlopsOfStep) / seconds;
}

}  // namespace

MachineLimits measure_limits(int64_t buffer_bytes, int32_t threads) {
  ThreadPool pool(threads);
  return {measure_read(pool, buffer_bytes), measure_flops(pool), buffer_bytes};
}

PassFloor floor_of(int64_t bytes, int64_t flops, const MachineLimits& limits) {
  return {static_cast<double>(bytes) / limits.read_bytes_per_s, static_cast<double>(flops) / limits.flops_per_s};
}

}  // namespace blockdraft
