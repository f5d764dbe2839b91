// What this machine can do at most, measured now and with the threads that compute: the floors of a pass.
#pragma once

#include <cstdint>

#include "base/cpu_isa.h"

namespace blockdraft {

struct MachineLimits {
  double read_bytes_per_s = 0;
  double flops_per_s = 0;
  int64_t read_buffer_bytes = 0;  // the read was measured over so many
};

// Reads `buffer_bytes` again and again, the best of several times: a buffer as large as what a pass reads, so that a
// model that fits into the cache is measured against the cache. Multiplies and adds with the instructions of the
// kernels for `isa` (cli/peak.h). threads 0: one for each core. Takes about half a second.
MachineLimits measure_limits(int64_t buffer_bytes, int32_t threads, CpuIsa isa);

// Seconds that a pass needs at least: max(bytes / bandwidth, flops / peak).
struct PassFloor {
  double memory_s = 0;
  double arithmetic_s = 0;

  double seconds() const { return memory_s > arithmetic_s ? memory_s : arithmetic_s; }
  bool arithmetic_bound() const { return arithmetic_s > memory_s; }
};
PassFloor floor_of(int64_t bytes, int64_t flops, const MachineLimits& limits);

}  // namespace blockdraft
