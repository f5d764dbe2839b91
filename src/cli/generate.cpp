#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <sys/resource.h>

#include "base/error.h"
#include "base/json.h"
#include "blockdraft/engine.h"
#include "cli/commands.h"
#include "cli/decode.h"
#include "cli/diagnostics.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/prompts.h"
#include "cli/report.h"

namespace blockdraft {
namespace {

constexpr const char* kExamples =
    R"(The text is the target's own, with and without a drafter. It streams as it becomes certain; several prompts come
one after the other, each under a line with its id. With --max-sequences above 1 only the first prompt streams.

With --json, one object a prompt: id, text, ids, finish_reason (stop or length), prompt_tokens,
completion_tokens, cycles (passes of the target after the prompt's), acceptance_length (tokens a pass where as
many tokens were drafted as asked for, with auto all), acceptance_length_all (over all passes), acceptance_by_position (share of
the verified first, second, ... drafts that were accepted), acceptance_by_depth (acceptance_length by the position
that drafting began at: first_position, last_position, cycles, acceptance_length), tokens_per_s (of the call, which
all prompts share if --max-sequences is above 1), first_token_s, total_s, memory.

--dump writes cycle-NUMBER.safetensors, what the drafter computed in a cycle (taps, context K/V, block input,
every layer's output, logits, drafts and what its family computes), and cycle-NUMBER.json, which says of each tensor
what it is and which positions its rows belong to, and how many drafts were accepted.

Examples:
  blockdraft generate --target demo/pycode-14m --drafter demo/pycode-14m-dflash --prompt 'def main():' --stats
  blockdraft generate --target demo/pycode-14m --prompts demo/prompts.jsonl --filter class --json
)";

struct GenerateFlags {
  CommonFlags common;
  ModelFlags models;
  TextFlags text;
  DiagnosticFlags diagnostics;
  DumpFlags dump;
};

// One text after the other, each under its header if there are several. The newest one may still be in the making.
class TextWriter {
 public:
  TextWriter(bool json, bool headers) : json_(json), headers_(headers) {}

  void begin(const NamedPrompt& prompt) {
    ends_line_ = true;
    if (headers_) header_ = fmt::format("== {} ==\n", prompt.id);
  }

  void write(std::string_view text) {
    if (json_ || text.empty()) return;
    write_header();
    ends_line_ = text.back() == '\n';
    write_out(text);
  }

  // A single text in a pipe stays exactly what it is.
  void end() {
    if (json_) return;
    write_header();
    if (!ends_line_ && (headers_ || stdout_is_terminal())) write_out("\n");
  }

  // Of a text that breaks off, so that what is wrong does not stand on its line.
  void break_off() {
    if (!json_ && !ends_line_) write_out("\n");
  }

 private:
  // Written with the first text, so that a prompt that is refused leaves none.
  void write_header() {
    if (!header_.empty()) write_out(header_);
    header_.clear();
  }

  bool json_;
  bool headers_;
  std::string header_;
  bool ends_line_ = true;
};

int64_t peak_resident_bytes() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return int64_t{usage.ru_maxrss} * 1024;  // Linux counts KiB
}

Json json_memory(const EngineInfo& info) {
  return {{"mapped_bytes", info.mapped_bytes},
          {"plan", json_plan(info.memory_plan)},
          {"plan_bytes", plan_bytes(info.memory_plan)},
          {"peak_resident_bytes", peak_resident_bytes()}};
}

struct Speed {
  double tokens_per_s = 0;
  CallTimes times;
};

Json json_text(const NamedPrompt& prompt, const Generation& generation, const Speed& speed, const EngineInfo& info) {
  AcceptanceTotals acceptance(AcceptanceTotals::full_width(info));
  acceptance.add(generation);
  return {{"id", prompt.id},
          {"text", generation.text},
          {"ids", generation.ids},
          {"finish_reason", name_of(generation.finish_reason)},
          {"prompt_tokens", generation.prompt_tokens},
          {"completion_tokens", generation.ids.size()},
          {"cycles", generation.cycles.size()},
          {"acceptance_length", json_or_null(acceptance.length())},
          {"acceptance_length_all", json_or_null(acceptance.length_all())},
          {"acceptance_by_position", acceptance.by_position()},
          {"acceptance_by_depth", json_by_depth(acceptance)},
          {"tokens_per_s", speed.tokens_per_s},
          {"first_token_s", speed.times.first_token_s},
          {"total_s", speed.times.total_s},
          {"memory", json_memory(info)}};
}

void print_stats(const EngineInfo& info, const std::vector<Generation>& generations, const SpeedTotals& speed) {
  AcceptanceTotals acceptance(AcceptanceTotals::full_width(info));
  for (const Generation& generation : generations) acceptance.add(generation);
  write_error(fmt::format("{} tokens in {:.3f} s: {:.1f} tokens/s on {}, the prompts' passes included\n", speed.tokens,
                          speed.seconds, speed.tokens_per_s(), place_of(info)));
  if (info.draft_tokens > 0) {
    write_error(fmt::format("{} passes with up to {} drafts: {} tokens a pass{}; {} of {} drafts accepted\n",
                            acceptance.cycles(), info.draft_tokens, decimal(acceptance.length_all(), 2),
                            info.adapts_width ? std::string()
                                              : fmt::format(", {} where {} were drafted",
                                                            decimal(acceptance.length(), 2), info.draft_tokens),
                            acceptance.accepted(), acceptance.drafted()));
  }
  write_error(acceptance_tables(acceptance));
  write_error(fmt::format("memory: {}; at most {} resident\n", memory_plan(info), megabytes(peak_resident_bytes())));
}

// One call of the engine. The first text streams; the others are held back until it is their turn.
Result<std::vector<Generation>> generate_batch(Engine& engine, const PromptBatch& batch, TextWriter& writer) {
  writer.begin(batch.prompts.front());
  auto generations = engine.generate(batch.requests, [&](const Piece& piece) {
    if (piece.request == 0) writer.write(piece.text);
    return true;
  });
  if (!generations) {
    writer.break_off();
    return name_prompt(batch, generations.error());
  }
  writer.end();
  for (size_t i = 1; i < batch.size(); ++i) {
    writer.begin(batch.prompts[i]);
    writer.write((*generations)[i].text);
    writer.end();
  }
  return generations;
}

Result<int> run_generate(const GenerateFlags& flags) {
  BLOCKDRAFT_TRY(apply(flags.common));
  BLOCKDRAFT_ASSIGN(const std::vector<NamedPrompt> prompts, load_prompts(flags.text));
  EngineOptions options = engine_options(flags.common, flags.models);
  BLOCKDRAFT_ASSIGN(options.dump, dump_options(flags.dump));
  BLOCKDRAFT_ASSIGN(Engine engine, open_engine(options));
  BLOCKDRAFT_TRY(summarize(flags.diagnostics, options, engine.info()));
  const std::vector<Request> requests = requests_of(prompts, flags.text);
  const PromptBatch all{prompts, requests};
  const size_t step = call_size(engine.info(), all.size());
  TextWriter writer(flags.common.json, all.size() > 1);
  std::vector<Generation> generations;
  SpeedTotals totals;
  for (size_t first = 0; first < all.size(); first += step) {
    const PromptBatch batch = all.part(first, step);
    DecodedBatch done;
    BLOCKDRAFT_ASSIGN(done.generations, generate_batch(engine, batch, writer));
    done.times = engine.last_call();
    SpeedTotals call;
    call.add(done);
    totals.add(done);
    for (size_t i = 0; i < batch.size(); ++i) {
      const Speed speed{call.tokens_per_s(), done.times};
      if (flags.common.json) write_json(json_text(batch.prompts[i], done.generations[i], speed, engine.info()));
      generations.push_back(std::move(done.generations[i]));
    }
  }
  warn_if_nothing_was_dumped(options.dump, generations);
  log_warnings(engine);
  if (flags.diagnostics.stats) print_stats(engine.info(), generations, totals);
  return kExitOk;
}

}  // namespace

Command add_generate(CLI::App& program) {
  auto flags = std::make_shared<GenerateFlags>();
  CLI::App* app = program.add_subcommand("generate", "Continue a text, faster with a drafter");
  add_model_flags(*app, flags->models, DrafterFlag::optional);
  add_draft_tokens_flag(*app, flags->models);
  add_text_flags(*app, flags->text);
  add_common_flags(*app, flags->common);
  add_diagnostic_flags(*app, flags->diagnostics, "Acceptance, speed and memory on stderr");
  add_dump_flags(*app, flags->dump);
  app->footer(kExamples);
  return {app, [flags] { return run_generate(*flags); }};
}

}  // namespace blockdraft
