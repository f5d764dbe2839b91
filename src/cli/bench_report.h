// What `bench` measured, and how it is shown.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "blockdraft/engine.h"
#include "cli/bench_parts.h"
#include "cli/report.h"
#include "cli/roofline.h"

namespace blockdraft {

// One way of decoding over all counted rounds.
struct BenchSeries {
  static constexpr int32_t kAuto = AcceptanceTotals::kEveryWidth;
  explicit BenchSeries(int32_t drafts) : width(drafts), acceptance(drafts) {}

  int32_t width;                     // drafts asked for; 0: plain; kAuto: as many as is fastest
  std::vector<double> tokens_per_s;  // one entry a round
  int64_t tokens = 0;                // of one round
  AcceptanceTotals acceptance;
  PartSamples parts;

  DraftWidth draft_width() const { return width == kAuto ? kAdaptiveWidth : DraftWidth(width); }
  std::string name() const { return width == 0 ? "plain" : width == kAuto ? "auto" : std::to_string(width); }
};

struct BenchResult {
  EngineInfo info;  // of the engine with the drafter
  int64_t prompts = 0;
  int64_t sequences = 1;  // decoded at once
  int32_t rounds = 0;
  double ready_ms = 0;  // from the start of the process until the engine with the drafter was open
  BenchSeries plain{0};
  std::vector<BenchSeries> drafted;  // at least one, auto first, then by rising width
  std::string accept_pattern;        // in place of real acceptance; empty: none
};

// What decoding reads again and again, plainly and drafted: the buffers to measure bandwidths with.
std::vector<int64_t> working_sets(const BenchResult& result);

std::string human_bench(const BenchResult& result, const MachineLimits& limits);
Json json_bench(const BenchResult& result, const MachineLimits& limits);

}  // namespace blockdraft
