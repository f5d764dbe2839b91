#include "cli/options.h"

#include <CLI/CLI.hpp>

#include "base/check_option.h"
#include "base/error.h"
#include "base/log.h"
#include "blockdraft/inspect.h"
#include "cli/flag_checks.h"
#include "cli/output.h"
#include "cli/report.h"

namespace blockdraft {
namespace {

constexpr const char* kModels = "Models";
constexpr const char* kText = "Text";
constexpr const char* kCommon = "Common";

std::vector<std::pair<std::string, WeightFormat>> weight_formats() {
  return {{"bf16", WeightFormat::bf16},
          {"fp8", WeightFormat::fp8},
          {"nvfp4", WeightFormat::nvfp4},
          {"int8", WeightFormat::int8}};
}

void add_drafter_flags(CLI::App& app, ModelFlags& flags) {
  CLI::Option* drafter = app.get_option("--drafter");
  add_choice<WeightFormat>(app, "--drafter-weights", flags.drafter_weights,
                           "What the drafter's linear weights become in memory; not given: they stay as stored",
                           weight_formats())
      ->needs(drafter)
      ->group(kModels);
  add_drafter_layout_flag(app, flags.drafter_layout)->needs(drafter);
  app.add_option("--confidence-threshold", flags.confidence_threshold,
                 "Verify only the drafts before the first one with less confidence than X; 0: verify all. For drafters "
                 "with a confidence head")
      ->type_name("X")
      ->check(number_check())
      ->capture_default_str()
      ->needs(drafter)
      ->group(kModels);
}

}  // namespace

void add_common_flags(CLI::App& app, CommonFlags& flags) {
  const auto set_device = [&flags](const std::string& name) { flags.device = *device_from_name(name); };
  app.add_option_function<std::string>("--device", set_device,
                                       "Where to compute: the CPU or, with commands that generate, a CUDA card, the "
                                       "first one or number N")
      ->type_name("cpu|cuda[:N]")
      ->default_str("cpu")
      ->check(device_check())
      ->group(kCommon);
  app.add_option(
         "--threads", flags.threads,
         "Threads to compute with; 0: one for each physical core. As many as cores stay each on its core, unless "
         "BLOCKDRAFT_PIN_THREADS is 0")
      ->type_name("N")
      ->check(range_check(0, kMaxThreads))
      ->capture_default_str()
      ->group(kCommon);
  app.add_option("--log-level", flags.log_level, "Least important messages to show: debug, info, warning, error or off")
      ->type_name("LEVEL")
      ->capture_default_str()
      ->group(kCommon);
  app.add_flag("--json", flags.json, "Print JSON for programs on stdout, everything for people on stderr")
      ->group(kCommon);
}

void add_target_flag(CLI::App& app, ModelFlags& flags) {
  app.add_option("--target", flags.target, "Folder of the model that writes the text, in Hugging Face layout")
      ->type_name("DIR")
      ->required()
      ->check(folder_check())
      ->group(kModels);
}

void add_model_flags(CLI::App& app, ModelFlags& flags, DrafterFlag drafter) {
  add_target_flag(app, flags);
  app.add_option(
         "--cpu-isa", flags.cpu_isa,
         "Kernels to use: portable, avx2, avx512 or avx512_bf16; default: BLOCKDRAFT_CPU_ISA, or the last of these "
         "that the processor has. Other kernels may write other texts")
      ->type_name("NAME")
      ->check(not_empty())
      ->group(kModels);
  add_choice<WeightFormat>(app, "--target-weights", flags.target_weights,
                           "What the target's linear weights and its head become in memory; not given: they stay as "
                           "stored. Other weights write other texts",
                           weight_formats())
      ->group(kModels);
  CLI::Option* option = app.add_option("--drafter", flags.drafter,
                                       drafter == DrafterFlag::required
                                           ? "Folder of the drafter trained for the target"
                                           : "Folder of the drafter trained for the target; none: plain decoding");
  option->type_name("DIR")->required(drafter == DrafterFlag::required)->check(folder_check())->group(kModels);
  add_drafter_flags(app, flags);
  add_limit_flags(app, flags);
}

void add_limit_flags(CLI::App& app, ModelFlags& flags) {
  app.add_option("--max-sequences", flags.max_sequences, "Prompts decoded at once; the others wait for their turn")
      ->type_name("N")
      ->check(range_check(1, kMaxSequences))
      ->capture_default_str()
      ->group(kModels);
  app.add_option("--max-positions", flags.max_positions,
                 fmt::format("Tokens of a prompt and its text together; 0: what the target allows, {} at most",
                             kDefaultMaxPositions))
      ->type_name("N")
      ->check(at_least(0))
      ->capture_default_str()
      ->group(kModels);
}

CLI::Option* add_drafter_layout_flag(CLI::App& app, DrafterLayout& layout) {
  return add_choice<DrafterLayout>(app, "--drafter-layout", layout,
                                   "Which row of a drafted block guesses which token, against what the drafter's "
                                   "config says: its own position's, or the next one's",
                                   {{"in-place", DrafterLayout::in_place}, {"shifted", DrafterLayout::shifted}})
      ->group(kModels);
}

void add_draft_tokens_flag(CLI::App& app, ModelFlags& flags) {
  const auto set = [&flags](const std::string& value) {
    flags.draft_tokens = value == "trained" ? kTrainedWidth
                         : value == "auto"  ? kAdaptiveWidth
                                            : DraftWidth(static_cast<int32_t>(std::stol(value)));
  };
  const CLI::Validator check(
      [](std::string& value) -> std::string {
        if (value == "trained" || value == "auto" || range_check(1, kMaxWidth)(value).empty()) return {};
        return fmt::format("'{}' is neither 'trained' nor 'auto' nor a whole number of 1 or more", value);
      },
      "", "");
  app.add_option_function<std::string>(
         "--draft-tokens", set,
         "Tokens drafted for each pass of the target; trained: as many as the drafter "
         "was trained for, which is the most; auto: from none to that, what is fastest here "
         "for this text. The text is the same")
      ->type_name("N|trained|auto")
      ->default_str("trained")
      ->needs(app.get_option("--drafter"))
      ->check(check)
      ->group(kModels);
}

void add_text_flags(CLI::App& app, TextFlags& flags) {
  CLI::Option* prompt = app.add_option_function<std::string>(
      "--prompt",
      [&flags](const std::string& text) {
        flags.prompt = text;
        flags.has_prompt = true;
      },
      "Text to continue");
  prompt->type_name("TEXT")->group(kText);
  app.add_option("--prompts", flags.prompts,
                 "File with one JSON object a line: \"prompt\" is the text to continue, \"id\" (optional) its name")
      ->type_name("FILE")
      ->excludes(prompt)
      ->group(kText);
  app.add_option("--filter", flags.filter, "Only the prompts whose id or text contains TEXT")
      ->type_name("TEXT")
      ->group(kText);
  app.add_option("--max-tokens", flags.max_tokens, "Most tokens to generate for a prompt")
      ->type_name("N")
      ->check(at_least(0))
      ->capture_default_str()
      ->group(kText);
  app.add_option("--stop", flags.stop, "End the text before TEXT; may be given several times")
      ->type_name("TEXT")
      ->allow_extra_args(false)
      ->check(not_empty())
      ->group(kText);
  app.add_flag("--ignore-eos", flags.ignore_eos, "Go on after the target's own end-of-text token")->group(kText);
  add_sampling_flags(app, flags);
}

Status apply(const CommonFlags& flags) {
  auto level = parse_log_level(flags.log_level);
  if (!level) return make_error(Code::invalid_argument, "--log-level: {}", level.error().message);
  log_to_stderr(*level);
  return {};
}

Status apply_on_cpu(const CommonFlags& flags, const char* command) {
  BLOCKDRAFT_TRY(apply(flags));
  if (flags.device == Device::cpu()) return {};
  return make_error(Code::invalid_argument, "--device is {}, expected cpu: {} works on the CPU alone",
                    name_of(flags.device), command);
}

EngineOptions engine_options(const CommonFlags& common, const ModelFlags& models) {
  return {.target = models.target,
          .drafter = models.drafter,
          .draft_tokens = models.draft_tokens,
          .device = common.device,
          .threads = common.threads,
          .cpu_isa = models.cpu_isa,
          .max_sequences = models.max_sequences,
          .max_positions = models.max_positions,
          .target_weights = models.target_weights,
          .drafter_weights = models.drafter_weights,
          .drafter_layout = models.drafter_layout,
          .confidence_threshold = models.confidence_threshold};
}

EngineOptions without_drafter(const EngineOptions& options) {
  return {.target = options.target,
          .device = options.device,
          .threads = options.threads,
          .cpu_isa = options.cpu_isa,
          .max_sequences = options.max_sequences,
          .max_positions = options.max_positions,
          .target_weights = options.target_weights};
}

Result<Engine> open_engine(const EngineOptions& options) {
  auto engine = Engine::open(options);
  if (engine || engine.error().code != Code::mismatch || options.drafter.empty()) return engine;
  const auto pairing = inspect_pair(options.target, options.drafter, {.drafter_layout = options.drafter_layout});
  if (pairing && !pairing->fits()) write_error(pairing_table(*pairing));
  return engine;
}

}  // namespace blockdraft
