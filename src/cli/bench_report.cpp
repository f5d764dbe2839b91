#include "cli/bench_report.h"

#include <algorithm>
#include <string_view>

#include <fmt/core.h>

#include "base/json.h"

namespace blockdraft {
namespace {

// Everything derived from the samples of a series.
struct Figures {
  double tokens_per_s = 0, ratio = 0, accept_us = 0, cycle_us = 0;
  std::vector<Part> parts;

  const Part& part(std::string_view name) const {
    static const Part none;
    const auto found = std::ranges::find(parts, name, &Part::name);
    return found == parts.end() ? none : *found;
  }
};

std::vector<Part> parts_of(const BenchResult& result, const BenchSeries& series) {
  return series.width == 0 ? plain_parts(result.info, result.sequences, series.parts)
                           : drafted_parts(result.info, result.sequences, series.parts);
}

// Plain and drafted decoding of the same round, side by side.
double median_ratio(const BenchSeries& plain, const BenchSeries& drafted) {
  std::vector<double> ratios;
  for (size_t round = 0; round < drafted.tokens_per_s.size(); ++round) {
    if (plain.tokens_per_s[round] > 0) ratios.push_back(drafted.tokens_per_s[round] / plain.tokens_per_s[round]);
  }
  return median(std::move(ratios));
}

Figures figures_of(const BenchResult& result, const BenchSeries& series) {
  return {.tokens_per_s = median(series.tokens_per_s),
          .ratio = median_ratio(result.plain, series),
          .accept_us = median_accept_us(series.parts),
          .cycle_us = median_cycle_us(series.parts),
          .parts = parts_of(result, series)};
}

TableRow row_of(const BenchSeries& series, const Figures& figures) {
  const auto number = [](double value, int places) { return fmt::format("{:.{}f}", value, places); };
  const bool plain = series.width == 0;
  return {series.name(),
          number(figures.tokens_per_s, 1),
          number(figures.ratio, 2),
          decimal(series.acceptance.length(), 2),
          plain ? "-" : number(figures.part("context").us, 0),
          plain ? "-" : number(figures.part("propose").us, 0),
          number(figures.part(plain ? "decode" : "verify").us, 0),
          number(figures.accept_us, 0),
          number(series.parts.hand_offs_of_cycle(), 0)};
}

void add_part_rows(std::vector<TableRow>& rows, const BenchSeries& series, const Figures& figures,
                   const MachineLimits& limits) {
  const std::string name = row_of(series, figures).front();
  for (const Part& part : figures.parts) rows.push_back(part_row(name, part, limits));
}

std::string sentence(const Part& part, const MachineLimits& limits) {
  const PassFloor floor = part.floor(limits);
  if (!limits.flops_per_s) {
    return fmt::format("A pass of the target over {} {}: {} take {:.0f} us to read; the pass takes {:.0f} us.\n",
                       part.rows, part.rows == 1 ? "row" : "rows", megabytes(part.bytes), floor.memory_s * 1e6,
                       part.us);
  }
  return fmt::format(
      "A pass of the target over {} {} is limited by {}: {:.1f} MFLOP take {:.0f} us at the peak, {} take {:.0f} us to "
      "read; the pass takes {:.0f} us.\n",
      part.rows, part.rows == 1 ? "row" : "rows", limit_name(floor), static_cast<double>(part.flops) * 1e-6,
      floor.arithmetic_s * 1e6, megabytes(part.bytes), floor.memory_s * 1e6, part.us);
}

std::string limits_sentence(const MachineLimits& limits) {
  std::string text = "Measured in this run: reading ";
  for (const ReadLimit& read : limits.reads) {
    text += fmt::format("{} at {:.1f} GB/s, ", megabytes(read.buffer_bytes), read.bytes_per_s * 1e-9);
  }
  if (limits.flops_per_s) {
    return text + fmt::format("multiplying and adding at {:.1f} GFLOP/s.\n", *limits.flops_per_s * 1e-9);
  }
  text.resize(text.size() - 2);
  return text +
         ".\nArithmetic is not counted: floors are of the bytes alone, and too low for passes over more than 64 "
         "rows.\n";
}

// There events of the card time the passes, and what is left of a cycle (the choice of tokens, copies, waiting, the
// CPU's work) comes as the time of accepting.
bool on_card(const EngineInfo& info) { return info.device.kind == Device::Kind::cuda; }

Json json_parts(const Figures& figures, const MachineLimits& limits) {
  Json parts = Json::array();
  for (const Part& part : figures.parts) parts.push_back(json_part(part, limits));
  return parts;
}

Json json_run(const BenchSeries& series, const Figures& figures, const BenchResult& result,
              const MachineLimits& limits) {
  const Part& verify = figures.part("verify");
  const Part& propose = figures.part("propose");
  return {{"width", series.width == BenchSeries::kAuto ? Json("auto") : Json(series.width)},
          {"plain_tokens_per_s", median(result.plain.tokens_per_s)},
          {"drafted_tokens_per_s", figures.tokens_per_s},
          {"speedup", figures.ratio},
          {"acceptance_length", json_or_null(series.acceptance.length())},
          {"acceptance_length_all", json_or_null(series.acceptance.length_all())},
          {"acceptance_by_position", series.acceptance.by_position()},
          {"acceptance_by_depth", json_by_depth(series.acceptance)},
          {"context_us", figures.part("context").us},
          {"propose_us", propose.us},
          {"verify_us", verify.us},
          {"accept_us", figures.accept_us},
          {"rest_us", on_card(result.info) ? Json(figures.accept_us) : Json(nullptr)},
          {"cycle_us", figures.cycle_us},
          {"hand_offs", series.parts.hand_offs_of_cycle()},
          {"propose_bytes", propose.bytes},
          {"verify_bytes", verify.bytes},
          {"verify_flops", verify.flops},
          {"propose_gb_per_s", propose.gb_per_s()},
          {"verify_gb_per_s", verify.gb_per_s()},
          {"verify_gflops", verify.gflops()},
          {"verify_floor_us", verify.floor(limits).seconds() * 1e6},
          {"floor_percent", verify.floor_percent(limits)},
          {"limit", limit_name(verify.floor(limits))},
          {"parts", json_parts(figures, limits)}};
}

Json json_reads(const MachineLimits& limits) {
  Json reads = Json::array();
  for (const ReadLimit& read : limits.reads) {
    reads.push_back({{"buffer_bytes", read.buffer_bytes}, {"gb_per_s", read.bytes_per_s * 1e-9}});
  }
  return reads;
}

}  // namespace

std::vector<int64_t> working_sets(const BenchResult& result) {
  std::vector<int64_t> sizes = {parts_of(result, result.plain).back().cycle_bytes};
  for (const BenchSeries& series : result.drafted) sizes.push_back(parts_of(result, series).back().cycle_bytes);
  return sizes;
}

std::string human_bench(const BenchResult& result, const MachineLimits& limits) {
  const EngineInfo& info = result.info;
  std::vector<TableRow> rows = {{"drafts", "tokens/s", "ratio", "tokens", "context", "propose", "verify",
                                 on_card(info) ? "rest" : "accept", "hand-offs"},
                                {"", "", "", "/pass", "us", "us", "us", "us", "/cycle"}};
  std::vector<TableRow> parts = part_heading();
  const auto add = [&](const BenchSeries& series) {
    const Figures figures = figures_of(result, series);
    rows.push_back(row_of(series, figures));
    add_part_rows(parts, series, figures, limits);
  };
  add(result.plain);
  for (const BenchSeries& series : result.drafted) add(series);
  std::string text =
      fmt::format("{} with {} (trained for {} drafts) on {}; {} prompts, {} tokens; medians of {} alternating rounds\n",
                  info.target_kind, info.drafter_kind, info.trained_width, place_of(info), result.prompts,
                  result.plain.tokens, result.rounds);
  if (!result.accept_pattern.empty()) {
    text += fmt::format("NOT REAL ACCEPTANCE: drafts are accepted with the chances {} of --accept-pattern.\n",
                        result.accept_pattern);
  }
  text += table(rows) + table(parts) + limits_sentence(limits);
  if (on_card(info))
    text += "The card times the passes; rest is the time of a cycle less context, propose and verify.\n";
  text += fmt::format("Ready {:.0f} ms after the start of the process.\n", result.ready_ms);
  const Figures plain = figures_of(result, result.plain);
  const Figures widest = figures_of(result, result.drafted.back());
  return text + sentence(plain.part("decode"), limits) + sentence(widest.part("verify"), limits);
}

Json json_bench(const BenchResult& result, const MachineLimits& limits) {
  const Figures plain = figures_of(result, result.plain);
  const Part& decode = plain.part("decode");
  Json runs = Json::array();
  for (const BenchSeries& series : result.drafted) {
    runs.push_back(json_run(series, figures_of(result, series), result, limits));
  }
  Json json = runs.back();  // the widest is the whole; the others are for comparison
  json["prompts"] = result.prompts;
  json["accept_pattern"] = result.accept_pattern.empty() ? Json(nullptr) : Json(result.accept_pattern);
  json["tokens"] = result.plain.tokens;
  json["rounds"] = result.rounds;
  json["ready_ms"] = result.ready_ms;
  json["plain_parts"] = json_parts(plain, limits);
  json["decode_us"] = decode.us;
  json["decode_cycle_us"] = plain.cycle_us;
  json["decode_hand_offs"] = result.plain.parts.hand_offs_of_cycle();
  json["decode_bytes"] = decode.bytes;
  json["decode_floor_us"] = decode.floor(limits).seconds() * 1e6;
  json["decode_floor_percent"] = decode.floor_percent(limits);
  json["decode_limit"] = limit_name(decode.floor(limits));
  json["read_gb_per_s"] = limits.reads.front().bytes_per_s * 1e-9;
  json["read_buffer_bytes"] = limits.reads.front().buffer_bytes;
  json["reads"] = json_reads(limits);
  json["peak_gflops"] = limits.flops_per_s ? Json(*limits.flops_per_s * 1e-9) : Json(nullptr);
  json["device"] = name_of(result.info.device);
  json["device_name"] = result.info.device_name;
  json["threads"] = result.info.threads;
  json["cpu_isa"] = result.info.cpu_isa;
  json["runs"] = std::move(runs);
  return json;
}

}  // namespace blockdraft
