#include "cli/options.h"

#include <charconv>
#include <limits>
#include <system_error>

#include <CLI/CLI.hpp>

#include "base/error.h"
#include "base/log.h"
#include "blockdraft/inspect.h"
#include "cli/output.h"
#include "cli/report.h"

namespace blockdraft {
namespace {

constexpr const char* kModels = "Models";
constexpr const char* kText = "Text";
constexpr const char* kSampling = "Sampling";
constexpr const char* kCommon = "Common";

// A check whose message says what was found and what to give. CLI11 puts the flag's name in front.
CLI::Validator folder_check() {
  return CLI::Validator(
      [](std::string& value) -> std::string {
        std::error_code error;
        if (std::filesystem::is_directory(value, error)) return {};
        return fmt::format("there is no folder '{}'; give one that holds config.json and weights", value);
      },
      "", "");
}

CLI::Validator range_check(int64_t min, int64_t max) {
  return CLI::Validator(
      [min, max](std::string& value) -> std::string {
        int64_t number = 0;
        const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
        const bool whole = error == std::errc() && end == value.data() + value.size();
        if (whole && number >= min && number <= max) return {};
        if (max == std::numeric_limits<int64_t>::max()) {
          return fmt::format("'{}' is not a whole number of {} or more", value, min);
        }
        return fmt::format("'{}' is not a whole number from {} to {}", value, min, max);
      },
      "", "");
}

CLI::Validator at_least(int64_t min) { return range_check(min, std::numeric_limits<int64_t>::max()); }

constexpr int64_t kMaxThreads = 1024;
constexpr int64_t kMaxSequences = 1024;
constexpr int64_t kMaxWidth = 1024;  // the drafter's trained width is the limit that counts; the engine knows it

// The engine checks the ranges: they are the same for everyone who asks it.
void add_sampling_flags(CLI::App& app, TextFlags& flags) {
  app.add_option("--temperature", flags.temperature, "Draw tokens, the more freely the higher; 0: take the likeliest")
      ->type_name("T")
      ->capture_default_str()
      ->group(kSampling);
  app.add_option("--top-k", flags.top_k, "Draw from the K likeliest tokens only; 0: from all")
      ->type_name("K")
      ->check(range_check(0, std::numeric_limits<int32_t>::max()))
      ->capture_default_str()
      ->group(kSampling);
  app.add_option("--top-p", flags.top_p, "Draw from the likeliest tokens that reach probability P together")
      ->type_name("P")
      ->capture_default_str()
      ->group(kSampling);
  app.add_option("--min-p", flags.min_p, "Draw from tokens with P times the likeliest one's probability at least")
      ->type_name("P")
      ->capture_default_str()
      ->group(kSampling);
  app.add_option("--seed", flags.seed, "The same seed gives the same text")
      ->type_name("N")
      ->check(at_least(0))
      ->capture_default_str()
      ->group(kSampling);
  const auto set = [&flags](const std::string& value) {
    flags.acceptance = value == "ratio" ? Acceptance::ratio : Acceptance::coupled;
  };
  app.add_option_function<std::string>("--acceptance", set,
                                       "How drafts are accepted when tokens are drawn: coupled gives the text of plain "
                                       "decoding with the seed, ratio another text of the same law")
      ->type_name("coupled|ratio")
      ->default_str("coupled")
      ->check(CLI::IsMember({"coupled", "ratio"}))
      ->group(kSampling);
}

}  // namespace

void add_common_flags(CLI::App& app, CommonFlags& flags) {
  app.add_option("--device", flags.device, "Where to compute: cpu (this build has no other)")
      ->type_name("cpu|cuda[:N]")
      ->capture_default_str()
      ->group(kCommon);
  app.add_option("--threads", flags.threads, "Threads to compute with; 0: one for each core")
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
  CLI::Option* option = app.add_option("--drafter", flags.drafter,
                                       drafter == DrafterFlag::required
                                           ? "Folder of the drafter trained for the target"
                                           : "Folder of the drafter trained for the target; none: plain decoding");
  option->type_name("DIR")->required(drafter == DrafterFlag::required)->check(folder_check())->group(kModels);
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

void add_draft_tokens_flag(CLI::App& app, ModelFlags& flags) {
  const auto set = [&flags](const std::string& value) {
    flags.draft_tokens = value == "trained" ? kTrainedWidth : static_cast<int32_t>(std::stol(value));
  };
  const CLI::Validator check(
      [](std::string& value) -> std::string {
        if (value == "trained" || range_check(1, kMaxWidth)(value).empty()) return {};
        return fmt::format("'{}' is neither 'trained' nor a whole number of 1 or more", value);
      },
      "", "");
  app.add_option_function<std::string>("--draft-tokens", set,
                                       "Tokens drafted for each pass of the target; trained: as many as the drafter "
                                       "was trained for, which is the most")
      ->type_name("N|trained")
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
      ->check(CLI::Validator([](std::string& value) { return value.empty() ? std::string("the text is empty") : ""; },
                             "", ""))
      ->group(kText);
  app.add_flag("--ignore-eos", flags.ignore_eos, "Go on after the target's own end-of-text token")->group(kText);
  add_sampling_flags(app, flags);
}

Status apply(const CommonFlags& flags) {
  auto level = parse_log_level(flags.log_level);
  if (!level) return make_error(Code::invalid_argument, "--log-level: {}", level.error().message);
  log_to_stderr(*level);
  if (flags.device == "cpu") return {};
  const std::string_view device = flags.device;
  const bool numbered = device.starts_with("cuda:") && range_check(0, kMaxWidth)(flags.device.substr(5)).empty();
  if (device == "cuda" || numbered) {
    return Error{Code::io_error, fmt::format("--device {}: this build has no CUDA backend, use --device cpu", device)};
  }
  return make_error(Code::invalid_argument, "--device: '{}' is no device, expected cpu or cuda[:N]", device);
}

EngineOptions engine_options(const CommonFlags& common, const ModelFlags& models) {
  return {.target = models.target,
          .drafter = models.drafter,
          .draft_tokens = models.draft_tokens,
          .threads = common.threads,
          .max_sequences = models.max_sequences,
          .max_positions = models.max_positions};
}

Result<Engine> open_engine(const EngineOptions& options) {
  auto engine = Engine::open(options);
  if (engine || engine.error().code != Code::mismatch || options.drafter.empty()) return engine;
  const auto pairing = inspect_pair(options.target, options.drafter);
  if (pairing && !pairing->fits()) write_error(pairing_table(*pairing));
  return engine;
}

}  // namespace blockdraft
