#include "support/decoder.h"

#include <utility>

#include "support/take.h"

namespace blockdraft::test {

std::unique_ptr<Target> open_target(const std::filesystem::path& folder, const TokenEngineOptions& options) {
  const TargetConfig config = take(read_target_config(folder));
  return take(load_target({folder}, config,
                          {.max_sequences = options.max_sequences,
                           .max_positions = options.max_positions,
                           .max_rows = max_target_rows(options.cycle_limits())},
                          {.isa = options.isa}));
}

TargetWeights tensors_of(const Target& target, int64_t num_choices) {
  return {.embed_tokens = target.embed_tokens(),
          .lm_head = target.lm_head(),
          .embedding_scale = target.embedding_scale(),
          .num_hidden_layers = target.config().transformer.num_hidden_layers,
          .num_choices = num_choices == 0 ? target.embed_tokens().out_features : num_choices};
}

std::unique_ptr<DraftModel> open_drafter(const std::filesystem::path& folder, const Target& target,
                                         const TokenEngineOptions& options) {
  const DrafterConfig config = take(read_drafter_config(folder));
  return take(DraftModel::load({folder}, config, tensors_of(target, options.num_choices),
                               {.max_sequences = options.max_sequences, .max_positions = options.max_positions},
                               {.isa = options.isa}));
}

Decoder::Decoder(const std::filesystem::path& target_folder, TokenEngineOptions options, const MakeDrafts& make_drafts)
    : Decoder(open_target(target_folder, options), options, make_drafts) {}

Decoder::Decoder(std::unique_ptr<Target> target, TokenEngineOptions options, const MakeDrafts& make_drafts)
    : target_(std::move(target)), drafts_(make_drafts ? make_drafts(*target_) : nullptr) {
  if (options.num_choices == 0) options.num_choices = target_->embed_tokens().out_features;
  engine_ = take(TokenEngine::open(*target_, drafts_.get(), options));
}

Decoder::Decoder(const std::filesystem::path& target_folder, const std::filesystem::path& drafter_folder,
                 const TokenEngineOptions& options)
    : Decoder(target_folder, options, [&](const Target& target) -> std::unique_ptr<DraftSource> {
        return open_drafter(drafter_folder, target, options);
      }) {}

std::vector<TokenResult> Decoder::run(const std::vector<TokenRequest>& requests) {
  return take(engine_->run(requests));
}

TokenResult Decoder::run(const TokenRequest& request) { return take(engine_->run({&request, 1})).front(); }

}  // namespace blockdraft::test
