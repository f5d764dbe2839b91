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
}

namespace blockdraft {

// Of every command.
struct CommonFlags {
  std::string device = "cpu";
  int32_t threads = 0;
  std::string log_level = "warning";
  bool json = false;
};

// What is opened.
struct ModelFlags {
  std::filesystem::path target;
  std::filesystem::path drafter;
  int32_t draft_tokens = kTrainedWidth;
  int32_t max_sequences = 1;
  int64_t max_positions = 0;
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

  // How tokens are drawn: the fields of Request of the same names.
  float temperature = 0.0f;
  int32_t top_k = 0;
  float top_p = 1.0f;
  float min_p = 0.0f;
  uint64_t seed = 0;
  Acceptance acceptance = Acceptance::coupled;
};

// Adds the flags to a command; they write into `flags`, which must outlive the parsing.
void add_common_flags(CLI::App& app, CommonFlags& flags);
void add_target_flag(CLI::App& app, ModelFlags& flags);
enum class DrafterFlag { optional, required };
void add_model_flags(CLI::App& app, ModelFlags& flags, DrafterFlag drafter);
void add_draft_tokens_flag(CLI::App& app, ModelFlags& flags);
void add_text_flags(CLI::App& app, TextFlags& flags);

// Applies the common flags: checks the device, starts logging.
Status apply(const CommonFlags& flags);

EngineOptions engine_options(const CommonFlags& common, const ModelFlags& models);

// Opens the engine. If the drafter does not fit, the pairing report goes to stderr before the error is returned.
Result<Engine> open_engine(const EngineOptions& options);

}  // namespace blockdraft
