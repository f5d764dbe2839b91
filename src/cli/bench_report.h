// What `bench` measured, and how it is shown.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "blockdraft/engine.h"
#include "cli/report.h"
#include "cli/roofline.h"

namespace blockdraft {

// One way of decoding over all counted rounds.
struct BenchSeries {
  explicit BenchSeries(int32_t drafts) : width(drafts), acceptance(drafts) {}

  int32_t width;                     // drafts asked for; 0: plain
  std::vector<double> tokens_per_s;  // one entry a round
  int64_t tokens = 0;                // of one round
  AcceptanceTotals acceptance;
  std::vector<double> context_us, propose_us, verify_us, accept_us;  // one entry a cycle
  std::vector<double> positions;                                     // in the context, one entry a cycle and sequence
  std::vector<double> widths;                                        // drafts verified, the same
};

struct BenchResult {
  EngineInfo info;  // of the engine with the drafter
  int64_t prompts = 0;
  int64_t sequences = 1;  // decoded at once
  int32_t rounds = 0;
  BenchSeries plain{0};
  std::vector<BenchSeries> drafted;  // at least one, by rising width
};

int64_t verify_bytes(const BenchResult& result, const BenchSeries& series);   // weights, and K/V at the median context
int64_t propose_bytes(const BenchResult& result, const BenchSeries& series);  // the same, of the drafter

std::string human_bench(const BenchResult& result, const MachineLimits& limits);
Json json_bench(const BenchResult& result, const MachineLimits& limits, const std::string& device);

}  // namespace blockdraft
