// A target, a draft source and the engine over them, opened together.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <vector>

#include "draft/draft_model.h"
#include "engine/token_engine.h"
#include "target/target.h"

namespace blockdraft::test {

// num_choices 0: all rows of the table.
std::unique_ptr<Target> open_target(const std::filesystem::path& folder, const TokenEngineOptions& options);
TargetWeights tensors_of(const Target& target, int64_t num_choices = 0);
std::unique_ptr<DraftModel> open_drafter(const std::filesystem::path& folder, const Target& target,
                                         const TokenEngineOptions& options);

using MakeDrafts = std::function<std::unique_ptr<DraftSource>(const Target&)>;

class Decoder {
 public:
  // No `make_drafts`: plain decoding.
  Decoder(const std::filesystem::path& target_folder, TokenEngineOptions options, const MakeDrafts& make_drafts = {});
  Decoder(const std::filesystem::path& target_folder, const std::filesystem::path& drafter_folder,
          const TokenEngineOptions& options);
  // A target that a test has wrapped.
  Decoder(std::unique_ptr<Target> target, TokenEngineOptions options, const MakeDrafts& make_drafts);

  std::vector<TokenResult> run(const std::vector<TokenRequest>& requests);
  TokenResult run(const TokenRequest& request);
  TokenEngine& engine() { return *engine_; }
  Target& target() { return *target_; }

 private:
  std::unique_ptr<Target> target_;
  std::unique_ptr<DraftSource> drafts_;
  std::unique_ptr<TokenEngine> engine_;
};

}  // namespace blockdraft::test
