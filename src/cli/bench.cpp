#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/error.h"
#include "base/json.h"
#include "base/timer.h"
#include "blockdraft/engine.h"
#include "cli/bench_report.h"
#include "cli/commands.h"
#include "cli/decode.h"
#include "cli/diagnostics.h"
#include "cli/flag_checks.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/prompts.h"
#include "cli/roofline.h"

namespace blockdraft {
namespace {

constexpr const char* kExamples =
    R"(Every round decodes all prompts plainly and with each number of drafts, in turn; a first round warms up and does not
count. Figures are medians: tokens/s over rounds (the prompts' own passes included), times of the parts over cycles:
prefill (the target reads the prompt), decode (its pass in plain decoding), context (the drafter takes in what was
accepted), propose (the drafter's pass), verify (the target's pass over anchor and drafts), accept. Hand-offs are
loops given to all threads, each of which costs microseconds of waiting. A part's time is that of the cycles with its
most common number of rows. Its floor is the larger of two times: moving its bytes (weights once, K/V of the context)
at the bandwidth, and multiplying and adding (attention not counted) at the peak of the instructions for float weights;
both are measured in this run with the same threads, the bandwidth over as many bytes as a whole cycle reads. On a card
(--device cuda) passes are timed by events of the card, "rest" is the time of a cycle less context, propose and verify,
and floors are of the bytes alone, at the bandwidth of the card's memory.

With --json: the figures of the widest run (context_us, propose_us, verify_us, accept_us, rest_us (of a card, else null),
cycle_us, propose_bytes, verify_bytes, hand_offs, parts, acceptance_by_position, acceptance_by_depth, ...), decode_us,
decode_cycle_us, decode_hand_offs and plain_parts (prefill and decode of plain decoding), reads, peak_gflops (null on a
card), ready_ms, device, device_name, threads, cpu_isa, accept_pattern (null, or what was given: acceptance is then not
real), and runs: one entry for each number of drafts (width: it, or "auto"). A part: part, rows, us, bytes, flops,
gb_per_s, gflops, read_percent, floor_us, times_floor, floor_percent, limit. What has the name of a part in front
(verify_us) is in parts, too.

Example:
  blockdraft bench --target demo/pycode-14m --drafter demo/pycode-14m-dflash --prompts demo/prompts.jsonl \
    --filter function --max-tokens 96 --widths 2,4,trained
)";

const Timer process_timer;  // starts before main

constexpr const char* kDefaultWidths = "1,2,3,4,5,trained,auto";

struct BenchFlags {
  CommonFlags common;
  ModelFlags models;
  TextFlags text;
  DiagnosticFlags diagnostics;
  int64_t prompt_tokens = 0;  // 0: prompts are texts
  bool random_weights = false;
  std::string widths = kDefaultWidths;
  std::string accept_pattern;
  int32_t repeats = 5;
};

Result<int32_t> parse_width(std::string_view item, int32_t trained_width) {
  if (item == "trained") return trained_width;
  if (item == "auto") return BenchSeries::kAuto;
  const auto width = whole_number(item);
  if (width && *width >= 1 && *width <= kMaxWidth) return static_cast<int32_t>(*width);
  return make_error(Code::invalid_argument,
                    "--widths: '{}' is neither 'trained' nor 'auto' nor a whole number from 1 to {}", item, kMaxWidth);
}

// Auto first, then rising, each once. Of the default list what drafter and acceptance allow; of a given list all must
// be possible.
Result<std::vector<int32_t>> parse_widths(const std::string& list, int32_t trained_width, bool may_adapt) {
  std::vector<int32_t> widths;
  for (const std::string_view item : split_at_commas(list)) {
    BLOCKDRAFT_ASSIGN(const int32_t width, parse_width(item, trained_width));
    if (width == BenchSeries::kAuto && !may_adapt && list == kDefaultWidths) continue;
    if (width <= trained_width) {
      widths.push_back(width);
    } else if (list != kDefaultWidths) {
      return make_error(Code::invalid_argument, "--widths: {} drafts asked for, the drafter was trained for {}", width,
                        trained_width);
    }
  }
  std::sort(widths.begin(), widths.end());
  widths.erase(std::unique(widths.begin(), widths.end()), widths.end());
  return widths;
}

// All prompts once.
Status run_round(Engine& engine, const PromptBatch& all, int32_t round, BenchSeries& series) {
  SpeedTotals speed;
  const size_t step = call_size(engine.info(), all.size());
  for (size_t first = 0; first < all.size(); first += step) {
    BLOCKDRAFT_ASSIGN(const DecodedBatch batch, decode_batch(engine, all.part(first, step)));
    speed.add(batch);
    if (round == 0) continue;
    series.parts.add(batch);
    if (round > 1) continue;  // every round gives the same text
    for (const Generation& generation : batch.generations) {
      series.acceptance.add(generation);
      series.tokens += static_cast<int64_t>(generation.ids.size());
    }
  }
  if (round > 0) series.tokens_per_s.push_back(speed.tokens_per_s());
  return {};
}

struct Engines {
  Engine plain;
  Engine drafted;
  double ready_ms;  // when the second was open
};

Result<std::vector<float>> parse_chances(const std::string& list) {
  std::vector<float> chances;
  if (list.empty()) return chances;
  for (const std::string_view item : split_at_commas(list)) {
    const auto chance = number(item);
    if (chance && *chance >= 0.0f && *chance <= 1.0f) {
      chances.push_back(*chance);
      continue;
    }
    return make_error(Code::invalid_argument, "--accept-pattern: '{}' is not a number from 0 to 1", item);
  }
  return chances;
}

Result<Engines> open_engines(const BenchFlags& flags) {
  EngineOptions options = engine_options(flags.common, flags.models);
  options.random_weights = flags.random_weights;
  options.random_seed = flags.text.seed;
  BLOCKDRAFT_ASSIGN(options.accept_pattern, parse_chances(flags.accept_pattern));
  BLOCKDRAFT_ASSIGN(Engine drafted, open_engine(options));
  const double ready_ms = process_timer.elapsed_us() * 1e-3;
  BLOCKDRAFT_TRY(summarize(flags.diagnostics, options, drafted.info()));
  EngineOptions alone = without_drafter(options);
  alone.random_weights = options.random_weights;
  alone.random_seed = options.random_seed;
  BLOCKDRAFT_ASSIGN(Engine plain, open_engine(alone));
  return Engines{std::move(plain), std::move(drafted), ready_ms};
}

// Rounds 1 to `repeats` count.
Status run_rounds(Engines& engines, const PromptBatch& all, int32_t repeats, BenchResult& result) {
  const size_t parts = 1 + result.drafted.size();
  ProgressBar progress("bench", static_cast<size_t>(repeats + 1) * parts);
  size_t done = 0;
  for (int32_t round = 0; round <= repeats; ++round) {
    BLOCKDRAFT_TRY(run_round(engines.plain, all, round, result.plain));
    progress.update(++done);
    for (BenchSeries& series : result.drafted) {
      BLOCKDRAFT_TRY(engines.drafted.set_draft_tokens(series.draft_width()));
      BLOCKDRAFT_TRY(run_round(engines.drafted, all, round, series));
      progress.update(++done);
    }
  }
  return {};
}

// Without a cycle there is nothing to time.
Status check_cycles(const BenchResult& result) {
  if (result.plain.acceptance.cycles() > 0) return {};
  return make_error(Code::invalid_argument,
                    "no text went beyond its first token: give more --max-tokens, or --ignore-eos");
}

Result<BenchResult> measure(Engines& engines, const PromptBatch& all, const BenchFlags& flags) {
  BenchResult result;
  result.info = engines.drafted.info();
  result.prompts = static_cast<int64_t>(all.size());
  result.sequences = std::min<int64_t>(result.info.max_sequences, result.prompts);
  result.rounds = flags.repeats;
  result.ready_ms = engines.ready_ms;
  result.accept_pattern = flags.accept_pattern;
  // With ratio acceptance the text depends on the width, so that none adapts.
  const bool may_adapt = flags.text.acceptance != Acceptance::ratio || flags.text.temperature < kGreedyTemperature;
  BLOCKDRAFT_ASSIGN(const std::vector<int32_t> widths,
                    parse_widths(flags.widths, result.info.trained_width, may_adapt));
  for (const int32_t width : widths) result.drafted.emplace_back(width);
  BLOCKDRAFT_TRY(run_rounds(engines, all, flags.repeats, result));
  BLOCKDRAFT_TRY(check_cycles(result));
  return result;
}

Result<std::vector<NamedPrompt>> prompts_of(const BenchFlags& flags) {
  if (flags.prompt_tokens > 0) return name_random_prompts(flags.models.max_sequences);
  if (!flags.random_weights) return load_prompts(flags.text);
  return make_error(Code::invalid_argument, "--random-weights has no tokenizer for texts: give --prompt-tokens N");
}

std::vector<Request> requests_of(const std::vector<NamedPrompt>& prompts, const BenchFlags& flags,
                                 const EngineInfo& info) {
  if (flags.prompt_tokens == 0) return requests_of(prompts, flags.text);
  return random_requests(prompts, flags.text, flags.prompt_tokens, info.vocab_size);
}

Result<int> run_bench(const BenchFlags& flags) {
  BLOCKDRAFT_TRY(apply(flags.common));
  BLOCKDRAFT_ASSIGN(const std::vector<NamedPrompt> prompts, prompts_of(flags));
  MachineLimits limits;
  const bool on_card = flags.common.device.kind == Device::Kind::cuda;
  if (on_card) {
    BLOCKDRAFT_ASSIGN(limits, measure_card_limits(flags.common.device));
  }
  BLOCKDRAFT_ASSIGN(Engines engines, open_engines(flags));
  const std::vector<Request> requests = requests_of(prompts, flags, engines.drafted.info());
  BLOCKDRAFT_ASSIGN(const BenchResult result, measure(engines, {prompts, requests}, flags));
  if (!on_card) {
    BLOCKDRAFT_ASSIGN(limits, measure_limits(working_sets(result), result.info));
  }
  if (flags.common.json) write_json(json_bench(result, limits));
  log_warnings(engines.drafted);
  write_human(flags.common.json, human_bench(result, limits));
  if (flags.diagnostics.stats) write_human(flags.common.json, acceptance_tables(result.drafted.back().acceptance));
  return kExitOk;
}

void add_random_flags(CLI::App& app, BenchFlags& flags) {
  CLI::Option* tokens = app.add_option("--prompt-tokens", flags.prompt_tokens,
                                       "Prompts of N random ids in place of texts, one for each sequence of a batch");
  tokens->type_name("N")->check(at_least(1))->group("Measurement");
  for (const char* other : {"--prompt", "--prompts", "--filter"}) tokens->excludes(app.get_option(other));
  app.add_flag("--random-weights", flags.random_weights,
               "Random BF16 weights, by --seed, for folders that hold a config.json alone; texts mean nothing then")
      ->excludes(app.get_option("--verbose"))
      ->group("Models");
}

}  // namespace

Command add_bench(CLI::App& program) {
  auto flags = std::make_shared<BenchFlags>();
  CLI::App* app = program.add_subcommand("bench", "Time plain and drafted decoding side by side, and what limits them");
  add_model_flags(*app, flags->models, DrafterFlag::required);
  add_text_flags(*app, flags->text);
  add_common_flags(*app, flags->common);
  add_diagnostic_flags(*app, flags->diagnostics, "Also acceptance by draft and by position, of the widest run");
  add_random_flags(*app, *flags);
  app->add_option("--widths", flags->widths,
                  "Numbers of tokens drafted for each pass of the target; auto: chosen from cycle to cycle")
      ->type_name("LIST")
      ->capture_default_str()
      ->group("Measurement");
  app->add_option("--accept-pattern", flags->accept_pattern,
                  "For models with random weights: accept draft 1, 2, ... with these chances if those before it were, "
                  "whatever the target says. The text is then not the target's")
      ->type_name("P1,P2,...")
      ->check(not_empty())
      ->group("Measurement");
  app->add_option("--repeats", flags->repeats, "Rounds that count")
      ->type_name("N")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str()
      ->group("Measurement");
  app->footer(kExamples);
  return {app, [flags] { return run_bench(*flags); }};
}

}  // namespace blockdraft
