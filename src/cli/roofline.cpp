#include "cli/roofline.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include <sys/mman.h>
#include <unistd.h>

#include "base/cpu_isa.h"
#include "base/error.h"
#include "base/thread_pool.h"
#include "base/timer.h"
#include "cli/peak.h"
#include "cli/read_stream.h"

namespace blockdraft {
namespace {

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

ReadLimit measure_read(ThreadPool& pool, int64_t buffer_bytes, CpuIsa isa) {
  const size_t tasks = std::max<size_t>(1, static_cast<size_t>(buffer_bytes) / kStreamChunkBytes);
  std::vector<std::byte> buffer;
  buffer.reserve(tasks * kStreamChunkBytes);
  // Packed weights lie on large pages, too (nn/weight_packs.cpp). Advice, for whole pages before they are touched.
  const size_t page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  const size_t skipped = (page - reinterpret_cast<uintptr_t>(buffer.data()) % page) % page;
  if (buffer.capacity() > skipped) ::madvise(buffer.data() + skipped, buffer.capacity() - skipped, MADV_HUGEPAGE);
  buffer.resize(tasks * kStreamChunkBytes, std::byte{1});
  std::vector<uint64_t> sums(tasks);
  const double seconds = best_seconds([&] {
    pool.parallel_for(static_cast<int64_t>(tasks), [&](int64_t task, int) {
      const size_t index = static_cast<size_t>(task);
      sums[index] = read_chunk(isa, buffer.data() + index * kStreamChunkBytes);
    });
  });
  for (const uint64_t sum : sums) read_sink = read_sink + sum;
  return {buffer_bytes, static_cast<double>(buffer.size()) / seconds};
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

MachineLimits limits_of_cpu(std::span<const int64_t> buffer_bytes, int32_t threads, CpuIsa isa) {
  ThreadPool pool(threads);
  MachineLimits limits;
  std::vector<int64_t> sizes(buffer_bytes.begin(), buffer_bytes.end());
  std::ranges::sort(sizes);
  for (const int64_t size : sizes) {
    if (!limits.reads.empty() && size <= limits.reads.back().buffer_bytes * 9 / 8) continue;
    limits.reads.push_back(measure_read(pool, size, isa));
  }
  limits.flops_per_s = measure_flops(pool, isa);
  return limits;
}

}  // namespace

const ReadLimit& MachineLimits::read_of(int64_t bytes) const {
  const auto distance = [bytes](const ReadLimit& read) {
    return std::abs(std::log(static_cast<double>(bytes + 1) / static_cast<double>(read.buffer_bytes + 1)));
  };
  return *std::ranges::min_element(reads, {}, distance);
}

Result<MachineLimits> measure_limits(std::span<const int64_t> buffer_bytes, const EngineInfo& info) {
  BLOCKDRAFT_ASSIGN(const CpuIsa isa, choose_cpu_isa(info.cpu_isa));
  return limits_of_cpu(buffer_bytes, info.threads, isa);
}

Result<MachineLimits> measure_card_limits(Device device) {
  BLOCKDRAFT_ASSIGN(const ReadBandwidth read, measure_read_bandwidth(device));
  return MachineLimits{.reads = {{read.buffer_bytes, read.bytes_per_s}}, .flops_per_s = std::nullopt};
}

}  // namespace blockdraft
