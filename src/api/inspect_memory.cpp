#include "api/inspect_memory.h"

#include <algorithm>

#include "api/limits.h"
#include "base/check_option.h"
#include "base/error.h"
#include "base/thread_pool.h"
#include "draft/draft_model.h"
#include "engine/memory_plan.h"

namespace blockdraft {
namespace {

// Only the shape of a head counts.
OutputHead head_of(const TransformerConfig& transformer) {
  return {.weight = {.out_features = transformer.vocab_size, .in_features = transformer.hidden_size},
          .num_choices = transformer.vocab_size};
}

DrafterMemory memory_of(const DrafterConfig& drafter, const DrafterWeights& weights, OutputHead head,
                        const MemoryPlanReport& report) {
  if (weights.lm_head) head.weight = *weights.lm_head;
  return drafter_memory(drafter, weights, head,
                        {.max_sequences = report.max_sequences, .max_positions = report.max_positions}, report.threads);
}

Result<MemoryPlanReport> begin_report(const InspectOptions& options, int64_t max_positions) {
  BLOCKDRAFT_TRY(check_limits(options.threads, options.max_sequences));
  return MemoryPlanReport{.threads = resolve_threads(options.threads),
                          .max_sequences = options.max_sequences,
                          .max_positions = max_positions};
}

}  // namespace

Result<MemoryPlanReport> plan_engine(const TargetConfig& target, const DrafterConfig* drafter,
                                     const DrafterWeights* weights, const InspectOptions& options) {
  BLOCKDRAFT_ASSIGN(const int64_t max_positions, resolve_positions(options.max_positions, target.transformer));
  BLOCKDRAFT_ASSIGN(MemoryPlanReport report, begin_report(options, max_positions));
  const CycleLimits cycle{.max_sequences = report.max_sequences,
                          .max_width = drafter == nullptr ? 0 : drafter->trained_width()};
  const TargetLimits target_limits{
      .max_sequences = report.max_sequences, .max_positions = max_positions, .max_rows = max_target_rows(cycle)};
  ModelSizes models{.target = target_memory(target, target_limits, report.threads),
                    .hidden_size = target.transformer.hidden_size,
                    .head = head_of(target.transformer)};
  if (drafter != nullptr) {
    models.drafter = memory_of(*drafter, *weights, models.head, report);
    models.num_taps = static_cast<int64_t>(drafter->target_layer_ids.size());
  }
  for (const PlanItem& item : plan_memory(models, cycle).items()) {
    report.items.push_back({item.name, static_cast<int64_t>(item.size_bytes)});
  }
  return report;
}

Result<MemoryPlanReport> plan_drafter(const DrafterConfig& drafter, const DrafterWeights& weights,
                                      const InspectOptions& options) {
  BLOCKDRAFT_TRY(check_option("max_positions", options.max_positions, 0, kMaxPositions));
  const int64_t usual = std::min(drafter.transformer.max_position_embeddings, kDefaultMaxPositions);
  BLOCKDRAFT_ASSIGN(MemoryPlanReport report,
                    begin_report(options, options.max_positions == 0 ? usual : options.max_positions));
  const DrafterMemory memory = memory_of(drafter, weights, head_of(drafter.transformer), report);
  report.items = {{"context pages", static_cast<int64_t>(memory.state_bytes)},
                  {"scratch", static_cast<int64_t>(memory.scratch_bytes)}};
  return report;
}

}  // namespace blockdraft
