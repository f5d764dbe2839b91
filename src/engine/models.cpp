#include "engine/models.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/log.h"

namespace blockdraft {
namespace {

// Other values than the target's.
std::optional<uint64_t> drafter_seed(const ModelOptions& options) {
  if (!options.random_seed) return std::nullopt;
  return *options.random_seed + 1;
}

// Packs are for CPUs.
WeightLoading loading(const ModelOptions& options, LoadFormat format, ThreadPool& threads) {
  return {.format = format,
          .isa = options.device == nullptr ? options.isa : CpuIsa::portable,
          .threads = &threads,
          .cuda = options.device};
}

}  // namespace

TargetFacts facts_of(const TargetConfig& config, int64_t num_real_ids) {
  return {.hidden_size = config.transformer.hidden_size,
          .num_hidden_layers = config.transformer.num_hidden_layers,
          .vocab_size = config.transformer.vocab_size,
          .num_choices = std::min(num_real_ids, config.transformer.vocab_size)};
}

Result<Models> open_models(const TargetConfig& config, const ModelOptions& options) {
  const TargetFacts facts = facts_of(config, options.num_real_ids);
  for (const std::string& warning : config.transformer.warnings) log_warning("{}", warning);
  std::optional<DrafterConfig> drafter_config;
  if (!options.drafter.empty()) {
    BLOCKDRAFT_ASSIGN(drafter_config, read_drafter_config(options.drafter, options.layout));
    BLOCKDRAFT_TRY(require_pairing(*drafter_config, facts));
    for (const std::string& warning : drafter_config->warnings) log_warning("{}", warning);
  }
  const TokenEngineOptions engine_options{.device = options.device,
                                          .threads = options.threads,
                                          .pin_threads = options.pin_threads,
                                          .isa = options.isa,
                                          .max_sequences = options.max_sequences,
                                          .max_positions = options.max_positions,
                                          .max_width = drafter_config ? drafter_config->trained_width() : 0,
                                          .num_choices = facts.num_choices};
  ThreadPool threads(options.threads);  // while loading lasts
  Models models;
  BLOCKDRAFT_ASSIGN(models.target, load_target({options.target, options.random_seed}, config,
                                               {.max_sequences = options.max_sequences,
                                                .max_positions = options.max_positions,
                                                .max_rows = max_target_rows(engine_options.cycle_limits())},
                                               loading(options, options.target_format, threads)));
  if (drafter_config) {
    const TargetWeights tensors{.embed_tokens = models.target->embed_tokens(),
                                .lm_head = models.target->lm_head(),
                                .embedding_scale = models.target->embedding_scale(),
                                .num_hidden_layers = facts.num_hidden_layers,
                                .num_choices = facts.num_choices};
    BLOCKDRAFT_ASSIGN(models.drafter,
                      DraftModel::load({options.drafter, drafter_seed(options)}, *drafter_config, tensors,
                                       {.max_sequences = options.max_sequences, .max_positions = options.max_positions},
                                       loading(options, options.weight_format, threads)));
    if (options.confidence_threshold > 0.0f) {
      BLOCKDRAFT_TRY(models.drafter->set_confidence_threshold(options.confidence_threshold));
    }
  }
  BLOCKDRAFT_ASSIGN(models.engine, TokenEngine::open(*models.target, models.drafter.get(), engine_options));
  return models;
}

}  // namespace blockdraft
