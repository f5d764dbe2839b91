// A target, perhaps a drafter for it, and the engine over both, opened together.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>

#include "blockdraft/result.h"
#include "draft/draft_model.h"
#include "draft/pairing.h"
#include "engine/token_engine.h"
#include "target/target.h"

namespace blockdraft {

struct ModelOptions {
  CudaDevice* device = nullptr;  // null: the CPU. Borrowed; outlives what is opened
  std::filesystem::path target;
  std::filesystem::path drafter;  // empty: plain decoding
  int32_t threads = 0;
  CpuIsa isa = CpuIsa::portable;
  bool pin_threads = false;
  int32_t max_sequences = 1;
  int64_t max_positions = 0;
  std::optional<uint64_t> random_seed;            // random weights of this seed, for folders without any
  LoadFormat target_format = LoadFormat::stored;  // of the target's linear weights and head in memory
  int64_t num_real_ids = 0;                       // of the tokenizer; rows of the tables beyond them are padding

  // Of the drafter.
  std::optional<BlockLayout> layout;              // replaces what its config says
  LoadFormat weight_format = LoadFormat::stored;  // of its linear weights in memory
  float confidence_threshold = 0.0f;              // 0: every draft is verified
};

// Owns all three. The engine takes widths up to the drafter's trained one.
struct Models {
  std::unique_ptr<Target> target;
  std::unique_ptr<DraftModel> drafter;  // null: plain decoding
  std::unique_ptr<TokenEngine> engine;

  int32_t trained_width() const { return drafter == nullptr ? 0 : drafter->trained_width(); }
};

// `config` is the target's. A drafter that does not fit is refused before any weights are read.
Result<Models> open_models(const TargetConfig& config, const ModelOptions& options);

// What a drafter has to know of a target with this config.
TargetFacts facts_of(const TargetConfig& config, int64_t num_real_ids);

}  // namespace blockdraft
