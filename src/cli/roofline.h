// What the device of an engine can do at most, measured now: the floors of a pass.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "blockdraft/engine.h"
#include "blockdraft/result.h"

namespace blockdraft {

struct ReadLimit {
  int64_t buffer_bytes = 0;  // read again and again
  double bytes_per_s = 0;
};

struct MachineLimits {
  std::vector<ReadLimit> reads;       // by rising buffer; one at least
  std::optional<double> flops_per_s;  // nothing: arithmetic is not counted, as on a card

  // Of the buffer whose size is nearest, as a ratio, to what is read over and over: a model that fits into a cache is
  // measured against that cache.
  const ReadLimit& read_of(int64_t bytes) const;
};

// On the CPU with the engine's threads: reads buffers of these sizes (those within 1/8 of a smaller one are left out),
// the best of several times each, and multiplies and adds with the instructions of the kernels for the engine's
// instruction set (cli/peak.h). Takes about half a second.
Result<MachineLimits> measure_limits(std::span<const int64_t> buffer_bytes, const EngineInfo& info);

// Reads a card's memory: best before models fill it. Errors: those of measure_read_bandwidth.
Result<MachineLimits> measure_card_limits(Device device);

// Seconds that a pass needs at least: max(bytes / bandwidth, flops / peak).
struct PassFloor {
  double memory_s = 0;
  double arithmetic_s = 0;

  double seconds() const { return memory_s > arithmetic_s ? memory_s : arithmetic_s; }
  bool arithmetic_bound() const { return arithmetic_s > memory_s; }
};

}  // namespace blockdraft
