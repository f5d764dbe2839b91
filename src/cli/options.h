// The flags that several commands share, each declared once.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "blockdraft/engine.h"
#include "blockdraft/result.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace blockdraft {

inline constexpr int64_t kMaxWidth = 1024;  // the drafter's trained width is the limit that counts; the engine knows it

// Of every command.
struct CommonFlags {
  Device device;
  int32_t threads = 0;
  std::string log_level = "warning";
  bool json = false;
};

// What is opened.
struct ModelFlags {
  std::filesystem::path target;
  std::filesystem::path drafter;
  DraftWidth draft_tokens = kTrainedWidth;
  int32_t max_sequences = 1;
  int64_t max_positions = 0;
  WeightFormat target_weights = WeightFormat::as_stored;
  WeightFormat drafter_weights = WeightFormat::as_stored;
  DrafterLayout drafter_layout = DrafterLayout::as_stated;
  float confidence_threshold = 0.0f;
  std::string cpu_isa;
};

// What is generated.
struct TextFlags {
  std::string prompt;
  bool has_prompt = false;  // --prompt was given, perhaps as an empty text
  std::filesystem::path prompts;
  std::string filter;
  int64_t max_tokens = 128;
  std::vector<std::string> stop;
  bool ignore_eos = false;

  // How tokens are chosen: the fields of Request of the same names.
  float temperature = 0.0f;
  int32_t top_k = 0;
  float top_p = 1.0f;
  float min_p = 0.0f;
  uint64_t seed = 0;
  Acceptance acceptance = Acceptance::coupled;
  float repetition_penalty = 1.0f;
  float presence_penalty = 0.0f;
  float frequency_penalty = 0.0f;
  std::vector<LogitBias> logit_bias;
};

// Adds the flags to a command; they write into `flags`, which must outlive the parsing.
void add_common_flags(CLI::App& app, CommonFlags& flags);
void add_target_flag(CLI::App& app, ModelFlags& flags);
void add_limit_flags(CLI::App& app, ModelFlags& flags);  // max_sequences, max_positions
enum class DrafterFlag { optional, required };
void add_model_flags(CLI::App& app, ModelFlags& flags, DrafterFlag drafter);
CLI::Option* add_drafter_layout_flag(CLI::App& app, DrafterLayout& layout);  // part of add_model_flags
void add_draft_tokens_flag(CLI::App& app, ModelFlags& flags);
void add_text_flags(CLI::App& app, TextFlags& flags);
void add_sampling_flags(CLI::App& app, TextFlags& flags);  // part of add_text_flags

// Applies the common flags: starts logging.
Status apply(const CommonFlags& flags);
// The same for a command that computes nothing on a card. `command` names it.
Status apply_on_cpu(const CommonFlags& flags, const char* command);

EngineOptions engine_options(const CommonFlags& common, const ModelFlags& models);
// The same for plain decoding.
EngineOptions without_drafter(const EngineOptions& options);

// Opens the engine. If the drafter does not fit, the pairing report goes to stderr before the error is returned.
Result<Engine> open_engine(const EngineOptions& options);

}  // namespace blockdraft
