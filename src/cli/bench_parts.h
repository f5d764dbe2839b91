// The parts of decoding as `bench` times them: how long each took, and the work that it had to do.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "blockdraft/engine.h"
#include "cli/decode.h"
#include "cli/report.h"
#include "cli/roofline.h"

namespace blockdraft {

// One cycle. Of a batch, whose sequences need not agree: what is most common, or the median.
struct CycleSample {
  int32_t width = 0;         // drafts verified, of each sequence
  int32_t context_rows = 0;  // positions that the drafter took in before, of each sequence
  int64_t position = 0;      // of the anchor
  float context_us = 0, propose_us = 0, verify_us = 0, accept_us = 0;
};

struct PrefillSample {
  int64_t prompt_tokens = 0;
  double us = 0;
};

struct PartSamples {
  std::vector<CycleSample> cycles;
  std::vector<PrefillSample> prompts;
  int64_t hand_offs = 0;  // of all cycles

  double hand_offs_of_cycle() const;  // the mean

  void add(const DecodedBatch& batch);
};

// A part with the number of rows that is most common, at the median time of these.
struct Part {
  std::string name;  // "prefill", "decode", "context", "propose" or "verify"
  int64_t rows = 0;  // of all sequences
  double us = 0;
  int64_t bytes = 0;  // weights once a pass, and K/V of the context
  int64_t flops = 0;  // attention not counted
  // What is read again and again while this part runs: the limit that counts is the bandwidth out of so much memory.
  int64_t cycle_bytes = 0;

  double gb_per_s() const { return rate(bytes); }
  double gflops() const { return rate(flops); }
  double read_percent(const MachineLimits& limits) const;
  PassFloor floor(const MachineLimits& limits) const;
  double times_floor(const MachineLimits& limits) const;    // 1: as fast as the machine allows
  double floor_percent(const MachineLimits& limits) const;  // 100: as fast as the machine allows

 private:
  double rate(int64_t amount) const { return us > 0 ? static_cast<double>(amount) * 1e-3 / us : 0; }
};

// Those that `samples` holds. info: of the engine with the drafter; sequences: decoded at once.
std::vector<Part> plain_parts(const EngineInfo& info, int64_t sequences, const PartSamples& samples);
std::vector<Part> drafted_parts(const EngineInfo& info, int64_t sequences, const PartSamples& samples);
double median_accept_us(const PartSamples& samples);
double median_cycle_us(const PartSamples& samples);  // all four times of a cycle together

const char* limit_name(const PassFloor& floor);  // "arithmetic" or "memory"

std::vector<TableRow> part_heading();
TableRow part_row(const std::string& series, const Part& part, const MachineLimits& limits);
Json json_part(const Part& part, const MachineLimits& limits);

}  // namespace blockdraft
