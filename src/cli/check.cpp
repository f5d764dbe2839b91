#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "blockdraft/engine.h"
#include "cli/acceptance_theory.h"
#include "cli/check_report.h"
#include "cli/commands.h"
#include "cli/decode.h"
#include "cli/diagnostics.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/prompts.h"
#include "cli/report.h"

namespace blockdraft {
namespace {

constexpr const char* kExamples =
    R"(Decodes every prompt twice, plainly (a second engine without drafter) and with drafts, and compares the tokens and
what was streamed. Exit status 1 if anything differs. Speeds include the prompts' own passes.

With --json: prompts, tokens (compared), mismatches (prompts that differ), first_divergence (null, or prompt, token,
plain_id, drafted_id, plain_text, drafted_text), acceptance_length (tokens a pass of the target where as many tokens
were drafted as asked for, with auto all), acceptance_length_all (over all passes), acceptance_by_position (share of the verified
first, second, ... drafts that were accepted), acceptance_by_depth (acceptance_length by the position that drafting
began at: first_position, last_position, cycles, acceptance_length), plain_tokens_per_s, drafted_tokens_per_s, speedup;
with --acceptance-theory also acceptance_theory (of coupled and ratio: observed and allowed).

Example:
  blockdraft check --target demo/pycode-14m --drafter demo/pycode-14m-dflash --prompts demo/prompts.jsonl \
    --filter function --max-tokens 96
)";

struct CheckFlags {
  CommonFlags common;
  ModelFlags models;
  TextFlags text;
  DiagnosticFlags diagnostics;
  bool acceptance_theory = false;
};

// What was streamed must be the text: a fault of the program if not, whatever the models are.
Status check_streams(const PromptBatch& batch, const DecodedBatch& decoded, const char* way) {
  for (size_t i = 0; i < batch.size(); ++i) {
    if (decoded.streamed[i] == decoded.generations[i].text) continue;
    return make_error(Code::numeric,
                      "prompt '{}', {} decoding: the streamed pieces are not the text; report this fault",
                      batch.prompts[i].id, way);
  }
  return {};
}

void add_results(CheckTotals& totals, const PromptBatch& batch, const DecodedBatch& plain,
                 const DecodedBatch& drafted) {
  for (size_t i = 0; i < batch.size(); ++i) {
    ++totals.prompts;
    totals.tokens += static_cast<int64_t>(plain.generations[i].ids.size());
    const auto divergence = compare(batch.prompts[i].id, plain.generations[i], drafted.generations[i]);
    if (divergence) ++totals.mismatches;
    if (divergence && !totals.first_divergence) totals.first_divergence = divergence;
    totals.plain_acceptance.add(plain.generations[i]);
    totals.drafted_acceptance.add(drafted.generations[i]);
  }
  totals.plain_speed.add(plain);
  totals.drafted_speed.add(drafted);
}

Result<CheckTotals> compare_all(Engine& plain, Engine& drafted, const PromptBatch& all) {
  BLOCKDRAFT_TRY(warm_up(plain, all));
  BLOCKDRAFT_TRY(warm_up(drafted, all));
  CheckTotals totals(AcceptanceTotals::full_width(drafted.info()));
  ProgressBar progress("check", 2 * all.size());
  const size_t step = call_size(drafted.info(), all.size());
  for (size_t first = 0; first < all.size(); first += step) {
    const PromptBatch batch = all.part(first, step);
    const size_t done = 2 * first;
    BLOCKDRAFT_ASSIGN(const DecodedBatch plainly,
                      decode_batch(plain, batch, [&](size_t i) { progress.update(done + i); }));
    BLOCKDRAFT_TRY(check_streams(batch, plainly, "plain"));
    BLOCKDRAFT_ASSIGN(const DecodedBatch with_drafts,
                      decode_batch(drafted, batch, [&](size_t i) { progress.update(done + batch.size() + i); }));
    BLOCKDRAFT_TRY(check_streams(batch, with_drafts, "drafted"));
    add_results(totals, batch, plainly, with_drafts);
  }
  return totals;
}

Result<int> run_check(const CheckFlags& flags) {
  BLOCKDRAFT_TRY(apply(flags.common));
  if (flags.text.acceptance == Acceptance::ratio) {
    return make_error(Code::invalid_argument,
                      "--acceptance ratio: its texts follow the same law but are other texts; check compares texts, so "
                      "give coupled");
  }
  if (flags.acceptance_theory && !(flags.text.temperature >= kGreedyTemperature)) {
    return make_error(Code::invalid_argument,
                      "--acceptance-theory is about tokens that are drawn: --temperature is {}, expected {} or more",
                      flags.text.temperature, kGreedyTemperature);
  }
  BLOCKDRAFT_ASSIGN(const std::vector<NamedPrompt> prompts, load_prompts(flags.text));
  const EngineOptions options = engine_options(flags.common, flags.models);
  BLOCKDRAFT_ASSIGN(Engine drafted, open_engine(options));
  BLOCKDRAFT_TRY(summarize(flags.diagnostics, options, drafted.info()));
  BLOCKDRAFT_ASSIGN(Engine plain, open_engine(without_drafter(options)));
  const std::vector<Request> requests = requests_of(prompts, flags.text);
  BLOCKDRAFT_ASSIGN(const CheckTotals totals, compare_all(plain, drafted, {prompts, requests}));
  if (totals.tokens == 0) {
    return make_error(Code::limit_exceeded,
                      "nothing was compared, no prompt got a token: give more --max-tokens or --max-positions");
  }
  if (totals.drafted_acceptance.drafted() == 0) log_warning("no draft was verified, so nothing tested the drafter");
  log_warnings(drafted);
  Json json = json_check(totals, drafted.tokenizer());
  std::string human = fmt::format("on {}\n", place_of(drafted.info())) + human_check(totals, drafted.tokenizer());
  if (flags.acceptance_theory) {
    BLOCKDRAFT_ASSIGN(const AcceptanceTheories theories, measure_acceptance(drafted, {prompts, requests}));
    json["acceptance_theory"] = json_acceptance(theories);
    human += human_acceptance(theories);
  }
  if (flags.diagnostics.stats) human += acceptance_tables(totals.drafted_acceptance);
  if (flags.common.json) write_json(json);
  write_human(flags.common.json, human);
  return totals.mismatches == 0 ? kExitOk : kExitFailure;
}

}  // namespace

Command add_check(CLI::App& program) {
  auto flags = std::make_shared<CheckFlags>();
  CLI::App* app = program.add_subcommand("check", "Prove that drafting does not change the text, on your own prompts");
  add_model_flags(*app, flags->models, DrafterFlag::required);
  add_draft_tokens_flag(*app, flags->models);
  add_text_flags(*app, flags->text);
  app->add_flag("--acceptance-theory", flags->acceptance_theory,
                "Decode twice more, coupled and ratio: accepted drafts, and how many the laws of both models allow");
  add_common_flags(*app, flags->common);
  add_diagnostic_flags(*app, flags->diagnostics, "Also acceptance by draft and by position");
  app->footer(kExamples);
  return {app, [flags] { return run_check(*flags); }};
}

}  // namespace blockdraft
