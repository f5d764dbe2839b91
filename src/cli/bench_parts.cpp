#include "cli/bench_parts.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/core.h>

#include "base/json.h"

namespace blockdraft {
namespace {

// The largest of the most common values, since the last cycles of a text are narrower; 0 for none.
template <class Values>
int64_t most_common(const Values& values) {
  std::map<int64_t, int64_t> counts;
  for (const int64_t value : values) ++counts[value];
  std::pair<int64_t, int64_t> most{0, 0};  // how often, value
  for (const auto& [value, count] : counts) most = std::max(most, {count, value});
  return most.second;
}

// Cycle i of one text, and what it was.
void add_single(const Generation& generation, const CallTimes& times, std::vector<CycleSample>& cycles) {
  int64_t position = generation.prompt_tokens;
  int32_t context_rows = 0;  // the prompt's own passes handed theirs over
  for (size_t i = 0; i < generation.cycles.size(); ++i) {
    const CycleRecord& cycle = generation.cycles[i];
    const bool drafts = cycle.width > 0;  // a cycle that drafts nothing may leave its rows to the next that does
    cycles.push_back({cycle.width, drafts ? context_rows : 0, position, times.context_us[i], times.propose_us[i],
                      times.verify_us[i], times.accept_us[i]});
    position += cycle.produced;
    context_rows = cycle.produced + (drafts ? 0 : context_rows);
  }
}

// Cycles of a batch do not say whose they were.
void add_several(const DecodedBatch& batch, std::vector<CycleSample>& cycles) {
  std::vector<int64_t> widths, produced;
  std::vector<double> positions;
  for (const Generation& generation : batch.generations) {
    auto position = static_cast<double>(generation.prompt_tokens);
    for (const CycleRecord& cycle : generation.cycles) {
      widths.push_back(cycle.width);
      produced.push_back(cycle.produced);
      positions.push_back(position);
      position += cycle.produced;
    }
  }
  const CycleSample typical{.width = static_cast<int32_t>(most_common(widths)),
                            .context_rows = static_cast<int32_t>(most_common(produced)),
                            .position = static_cast<int64_t>(median(positions))};
  const CallTimes& times = batch.times;
  for (size_t i = 0; i < times.verify_us.size(); ++i) {
    CycleSample sample = typical;
    sample.context_us = times.context_us[i];
    sample.propose_us = times.propose_us[i];
    sample.verify_us = times.verify_us[i];
    sample.accept_us = times.accept_us[i];
    cycles.push_back(sample);
  }
}

// Of the cycles that have the most common rows of a kind.
struct Typical {
  int64_t rows = 0;  // of a sequence
  double us = 0;
  int64_t position = 0;
};

Typical typical(const std::vector<CycleSample>& cycles, int32_t CycleSample::*rows, float CycleSample::*us) {
  std::vector<int64_t> counts;
  for (const CycleSample& cycle : cycles) counts.push_back(cycle.*rows);
  const int64_t common = most_common(counts);
  std::vector<double> times, positions;
  for (const CycleSample& cycle : cycles) {
    if (cycle.*rows != common) continue;
    times.push_back(static_cast<double>(cycle.*us));
    positions.push_back(static_cast<double>(cycle.position));
  }
  return {common, median(times), static_cast<int64_t>(median(positions))};
}

std::vector<CycleSample> cycles_with(const std::vector<CycleSample>& cycles, int32_t CycleSample::*rows) {
  std::vector<CycleSample> some;
  for (const CycleSample& cycle : cycles) {
    if (cycle.*rows > 0) some.push_back(cycle);
  }
  return some;
}

Part verify_part(const EngineInfo& info, int64_t sequences, const PartSamples& samples, const char* name) {
  const auto found = typical(samples.cycles, &CycleSample::width, &CycleSample::verify_us);
  const int64_t rows = sequences * (found.rows + 1);
  return {.name = name,
          .rows = rows,
          .us = found.us,
          .bytes = info.verify_weight_bytes + sequences * found.position * info.verify_kv_bytes_per_position,
          .flops = rows * info.verify_flops_per_row};
}

Part propose_part(const EngineInfo& info, int64_t sequences, const std::vector<CycleSample>& cycles) {
  const auto found = typical(cycles, &CycleSample::width, &CycleSample::propose_us);
  const int64_t rows = sequences * (found.rows + info.propose_extra_rows);
  const int64_t body = info.propose_flops_per_row - info.choice_flops_per_row;
  return {.name = "propose",
          .rows = rows,
          .us = found.us,
          .bytes = info.propose_weight_bytes + sequences * found.position * info.propose_kv_bytes_per_position,
          .flops = rows * body + sequences * found.rows * info.choice_flops_per_row};
}

Part context_part(const EngineInfo& info, int64_t sequences, const std::vector<CycleSample>& cycles) {
  const auto found = typical(cycles, &CycleSample::context_rows, &CycleSample::context_us);
  return {.name = "context",
          .rows = sequences * found.rows,
          .us = found.us,
          .bytes = info.context_weight_bytes,
          .flops = sequences * found.rows * info.context_flops_per_row};
}

// The prompt's passes: each reads the layers and the K/V before it, the last one also the head, for one row.
Part prefill_part(const EngineInfo& info, const std::vector<PrefillSample>& prompts) {
  std::vector<int64_t> lengths;
  for (const PrefillSample& prompt : prompts) lengths.push_back(prompt.prompt_tokens);
  Part part{.name = "prefill", .rows = most_common(lengths)};
  std::vector<double> times;
  for (const PrefillSample& prompt : prompts) {
    if (prompt.prompt_tokens == part.rows) times.push_back(prompt.us);
  }
  part.us = median(times);
  part.bytes = info.head_weight_bytes;
  for (int64_t first = 0; first < part.rows; first += info.prefill_rows) {
    const int64_t positions = std::min<int64_t>(part.rows, first + info.prefill_rows);
    part.bytes += info.verify_weight_bytes - info.head_weight_bytes + positions * info.verify_kv_bytes_per_position;
  }
  part.flops = part.rows * (info.verify_flops_per_row - info.head_flops_per_row) + info.head_flops_per_row;
  return part;
}

std::string number(double value, int places) { return fmt::format("{:.{}f}", value, places); }

}  // namespace

void PartSamples::add(const DecodedBatch& batch) {
  if (batch.generations.size() == 1) {
    add_single(batch.generations.front(), batch.times, cycles);
  } else {
    add_several(batch, cycles);
  }
  hand_offs += batch.times.hand_offs;
  const auto prompts_read = static_cast<double>(batch.generations.size());
  for (const Generation& generation : batch.generations) {
    prompts.push_back({generation.prompt_tokens, batch.times.prefill_s * 1e6 / prompts_read});
  }
}

double PartSamples::hand_offs_of_cycle() const {
  return cycles.empty() ? 0 : static_cast<double>(hand_offs) / static_cast<double>(cycles.size());
}

double Part::read_percent(const MachineLimits& limits) const {
  return 100 * gb_per_s() * 1e9 / limits.read_of(cycle_bytes).bytes_per_s;
}

PassFloor Part::floor(const MachineLimits& limits) const {
  const double memory_s = static_cast<double>(bytes) / limits.read_of(cycle_bytes).bytes_per_s;
  return {memory_s, limits.flops_per_s ? static_cast<double>(flops) / *limits.flops_per_s : 0.0};
}

double Part::times_floor(const MachineLimits& limits) const {
  const double floor_us = floor(limits).seconds() * 1e6;
  return floor_us > 0 ? us / floor_us : 0;
}

std::vector<Part> plain_parts(const EngineInfo& info, int64_t sequences, const PartSamples& samples) {
  std::vector<Part> parts = {prefill_part(info, samples.prompts), verify_part(info, sequences, samples, "decode")};
  for (Part& part : parts) part.cycle_bytes = parts.back().bytes;
  return parts;
}

std::vector<Part> drafted_parts(const EngineInfo& info, int64_t sequences, const PartSamples& samples) {
  std::vector<Part> parts;
  const auto with_context = cycles_with(samples.cycles, &CycleSample::context_rows);
  const auto with_drafts = cycles_with(samples.cycles, &CycleSample::width);
  if (!with_context.empty()) parts.push_back(context_part(info, sequences, with_context));
  if (!with_drafts.empty()) parts.push_back(propose_part(info, sequences, with_drafts));
  parts.push_back(verify_part(info, sequences, samples, "verify"));
  int64_t cycle_bytes = 0;
  for (const Part& part : parts) cycle_bytes += part.bytes;
  for (Part& part : parts) part.cycle_bytes = cycle_bytes;
  return parts;
}

double median_accept_us(const PartSamples& samples) {
  std::vector<double> times;
  for (const CycleSample& cycle : samples.cycles) times.push_back(static_cast<double>(cycle.accept_us));
  return median(times);
}

double median_cycle_us(const PartSamples& samples) {
  std::vector<double> times;
  for (const CycleSample& cycle : samples.cycles) {
    times.push_back(static_cast<double>(cycle.context_us + cycle.propose_us + cycle.verify_us + cycle.accept_us));
  }
  return median(times);
}

const char* limit_name(const PassFloor& floor) { return floor.arithmetic_bound() ? "arithmetic" : "memory"; }

double Part::floor_percent(const MachineLimits& limits) const {
  const double times = times_floor(limits);
  return times > 0 ? 100 / times : 0;
}

std::vector<TableRow> part_heading() {
  return {{"drafts", "part", "rows", "time", "moved", "", "of read", "", "floor", "time /", "limited by"},
          {"", "", "", "us", "MB", "GB/s", "bandwidth", "GFLOP/s", "us", "floor", ""}};
}

TableRow part_row(const std::string& series, const Part& part, const MachineLimits& limits) {
  const PassFloor floor = part.floor(limits);
  return {series,
          part.name,
          std::to_string(part.rows),
          number(part.us, 0),
          number(static_cast<double>(part.bytes) * 1e-6, 1),
          number(part.gb_per_s(), 1),
          number(part.read_percent(limits), 0) + "%",
          number(part.gflops(), 1),
          number(floor.seconds() * 1e6, 0),
          number(part.times_floor(limits), 2),
          limit_name(floor)};
}

Json json_part(const Part& part, const MachineLimits& limits) {
  const PassFloor floor = part.floor(limits);
  return {{"part", part.name},
          {"rows", part.rows},
          {"us", part.us},
          {"bytes", part.bytes},
          {"flops", part.flops},
          {"gb_per_s", part.gb_per_s()},
          {"gflops", part.gflops()},
          {"read_percent", part.read_percent(limits)},
          {"floor_us", floor.seconds() * 1e6},
          {"times_floor", part.times_floor(limits)},
          {"floor_percent", part.floor_percent(limits)},
          {"limit", limit_name(floor)}};
}

}  // namespace blockdraft
