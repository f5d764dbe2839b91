#include "cli/bench_report.h"

#include <cmath>

#include <fmt/core.h>

#include "base/json.h"

namespace blockdraft {
namespace {

int64_t state_bytes(const BenchResult& result, const BenchSeries& series, int64_t bytes_per_position) {
  return result.sequences * bytes_per_position * std::llround(median(series.positions));
}

int64_t verify_rows(const BenchResult& result, const BenchSeries& series) {
  return result.sequences * (std::llround(median(series.widths)) + 1);
}

// Everything derived from the lists of a series.
struct Figures {
  double tokens_per_s = 0, ratio = 0;
  double context_us = 0, propose_us = 0, verify_us = 0, accept_us = 0;
  int64_t verify_bytes = 0, propose_bytes = 0, verify_flops = 0;
  PassFloor floor;  // of the target's pass

  double verify_gb_per_s() const { return rate(verify_bytes, verify_us); }
  double propose_gb_per_s() const { return rate(propose_bytes, propose_us); }
  double verify_gflops() const { return rate(verify_flops, verify_us); }
  double floor_us() const { return floor.seconds() * 1e6; }
  double floor_percent() const { return verify_us > 0 ? 100 * floor_us() / verify_us : 0; }

 private:
  static double rate(int64_t amount, double us) { return us > 0 ? static_cast<double>(amount) * 1e-3 / us : 0; }
};

// Plain and drafted decoding of the same round, side by side.
double median_ratio(const BenchSeries& plain, const BenchSeries& drafted) {
  std::vector<double> ratios;
  for (size_t round = 0; round < drafted.tokens_per_s.size(); ++round) {
    if (plain.tokens_per_s[round] > 0) ratios.push_back(drafted.tokens_per_s[round] / plain.tokens_per_s[round]);
  }
  return median(std::move(ratios));
}

Figures figures_of(const BenchResult& result, const BenchSeries& series, const MachineLimits& limits) {
  Figures figures{.tokens_per_s = median(series.tokens_per_s),
                  .ratio = median_ratio(result.plain, series),
                  .context_us = median(series.context_us),
                  .propose_us = median(series.propose_us),
                  .verify_us = median(series.verify_us),
                  .accept_us = median(series.accept_us),
                  .verify_bytes = verify_bytes(result, series),
                  .propose_bytes = propose_bytes(result, series),
                  .verify_flops = verify_rows(result, series) * result.info.verify_flops_per_row};
  figures.floor = floor_of(figures.verify_bytes, figures.verify_flops, limits);
  return figures;
}

TableRow row_of(const BenchSeries& series, const Figures& figures) {
  const auto number = [](double value, int places) { return fmt::format("{:.{}f}", value, places); };
  const bool plain = series.width == 0;
  return {plain ? "plain" : std::to_string(series.width),
          number(figures.tokens_per_s, 1),
          number(figures.ratio, 2),
          decimal(series.acceptance.length(), 2),
          plain ? "-" : number(figures.context_us, 0),
          plain ? "-" : number(figures.propose_us, 0),
          number(figures.verify_us, 0),
          number(figures.accept_us, 0),
          plain ? "-" : number(figures.propose_gb_per_s(), 1),
          number(figures.verify_gb_per_s(), 1),
          number(figures.verify_gflops(), 1),
          number(figures.floor_us(), 0),
          number(figures.floor_percent(), 0) + "%"};
}

const char* limit_name(const PassFloor& floor) { return floor.arithmetic_bound() ? "arithmetic" : "memory"; }

std::string sentence(const BenchResult& result, const BenchSeries& series, const Figures& figures) {
  return fmt::format(
      "A pass of the target over {} {} is limited by {}: {:.1f} MFLOP take {:.0f} us at the peak, {} take {:.0f} us to "
      "read; the pass takes {:.0f} us.\n",
      verify_rows(result, series), verify_rows(result, series) == 1 ? "row" : "rows", limit_name(figures.floor),
      static_cast<double>(figures.verify_flops) * 1e-6, figures.floor.arithmetic_s * 1e6,
      megabytes(figures.verify_bytes), figures.floor.memory_s * 1e6, figures.verify_us);
}

Json json_run(const BenchSeries& series, const Figures& figures, const BenchResult& result) {
  return {{"width", series.width},
          {"plain_tokens_per_s", median(result.plain.tokens_per_s)},
          {"drafted_tokens_per_s", figures.tokens_per_s},
          {"speedup", figures.ratio},
          {"acceptance_length", json_or_null(series.acceptance.length())},
          {"acceptance_length_all", json_or_null(series.acceptance.length_all())},
          {"acceptance_by_position", series.acceptance.by_position()},
          {"acceptance_by_depth", json_by_depth(series.acceptance)},
          {"context_us", figures.context_us},
          {"propose_us", figures.propose_us},
          {"verify_us", figures.verify_us},
          {"accept_us", figures.accept_us},
          {"propose_bytes", figures.propose_bytes},
          {"verify_bytes", figures.verify_bytes},
          {"verify_flops", figures.verify_flops},
          {"propose_gb_per_s", figures.propose_gb_per_s()},
          {"verify_gb_per_s", figures.verify_gb_per_s()},
          {"verify_gflops", figures.verify_gflops()},
          {"verify_floor_us", figures.floor_us()},
          {"floor_percent", figures.floor_percent()},
          {"limit", limit_name(figures.floor)}};
}

}  // namespace

int64_t verify_bytes(const BenchResult& result, const BenchSeries& series) {
  return result.info.verify_weight_bytes + state_bytes(result, series, result.info.verify_kv_bytes_per_position);
}

int64_t propose_bytes(const BenchResult& result, const BenchSeries& series) {
  return result.info.propose_weight_bytes + state_bytes(result, series, result.info.propose_kv_bytes_per_position);
}

std::string human_bench(const BenchResult& result, const MachineLimits& limits) {
  const EngineInfo& info = result.info;
  std::vector<TableRow> rows = {
      {"drafts", "tokens/s", "ratio", "tokens", "context", "propose", "verify", "accept", "propose", "verify", "verify",
       "floor", "of"},
      {"", "", "", "/pass", "us", "us", "us", "us", "GB/s", "GB/s", "GFLOP/s", "us", "floor"}};
  const Figures plain = figures_of(result, result.plain, limits);
  rows.push_back(row_of(result.plain, plain));
  for (const BenchSeries& series : result.drafted) rows.push_back(row_of(series, figures_of(result, series, limits)));
  std::string text = fmt::format(
      "{} with {} (trained for {} drafts), {} threads, {} prompts, {} tokens; medians of {} "
      "alternating rounds\n",
      info.target_kind, info.drafter_kind, info.trained_width, info.threads, result.prompts, result.plain.tokens,
      result.rounds);
  text += table(rows);
  text += fmt::format("Measured in this run: reading {} at {:.1f} GB/s, multiplying and adding at {:.1f} GFLOP/s.\n",
                      megabytes(limits.read_buffer_bytes), limits.read_bytes_per_s * 1e-9, limits.flops_per_s * 1e-9);
  const BenchSeries& widest = result.drafted.back();
  return text + sentence(result, result.plain, plain) + sentence(result, widest, figures_of(result, widest, limits));
}

Json json_bench(const BenchResult& result, const MachineLimits& limits, const std::string& device) {
  const Figures plain = figures_of(result, result.plain, limits);
  Json runs = Json::array();
  for (const BenchSeries& series : result.drafted) {
    runs.push_back(json_run(series, figures_of(result, series, limits), result));
  }
  Json json = runs.back();  // the widest is the whole; the others are for comparison
  json["prompts"] = result.prompts;
  json["tokens"] = result.plain.tokens;
  json["rounds"] = result.rounds;
  json["decode_us"] = plain.verify_us;
  json["decode_bytes"] = plain.verify_bytes;
  json["decode_floor_us"] = plain.floor_us();
  json["decode_floor_percent"] = plain.floor_percent();
  json["decode_limit"] = limit_name(plain.floor);
  json["read_gb_per_s"] = limits.read_bytes_per_s * 1e-9;
  json["read_buffer_bytes"] = limits.read_buffer_bytes;
  json["peak_gflops"] = limits.flops_per_s * 1e-9;
  json["device"] = device;
  json["threads"] = result.info.threads;
  json["runs"] = std::move(runs);
  return json;
}

}  // namespace blockdraft
