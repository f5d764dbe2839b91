// What this machine can do at most, measured now and with the threads that compute: the floors of a pass.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/cpu_isa.h"

namespace blockdraft {

struct ReadLimit {
  int64_t buffer_bytes = 0;  // read again and again
  double bytes_per_s = 0;
};

struct MachineLimits {
  std::vector<ReadLimit> reads;  // by rising buffer; one at least
  double flops_per_s = 0;

  // Of the buffer whose size is nearest, as a ratio, to what is read over and over: a model that fits into a cache is
  // measured against that cache.
  const ReadLimit& read_of(int64_t bytes) const;
};

// Reads buffers of these sizes (those within 1/8 of a smaller one are left out), the best of several times each.
// Multiplies and adds with the instructions of the kernels for `isa` (cli/peak.h). threads 0: as in base/thread_pool.h.
// Takes about half a second.
MachineLimits measure_limits(std::span<const int64_t> buffer_bytes, int32_t threads, CpuIsa isa);

// Seconds that a pass needs at least: max(bytes / bandwidth, flops / peak).
struct PassFloor {
  double memory_s = 0;
  double arithmetic_s = 0;

  double seconds() const { return memory_s > arithmetic_s ? memory_s : arithmetic_s; }
  bool arithmetic_bound() const { return arithmetic_s > memory_s; }
};

}  // namespace blockdraft
