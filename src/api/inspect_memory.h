// Memory plans of models that are not open.
#pragma once

#include "blockdraft/inspect.h"
#include "blockdraft/result.h"
#include "draft/drafter_config.h"
#include "draft/drafter_weights.h"
#include "target/target_config.h"

namespace blockdraft {

// Of an engine; `drafter` and `weights` (whose shapes count) may be null together: plain decoding. Errors: a limit out
// of range (invalid_argument).
Result<MemoryPlanReport> plan_engine(const TargetConfig& target, const DrafterConfig* drafter,
                                     const DrafterWeights* weights, const InspectOptions& options);

// Of the drafter alone, for a target with as many embedding rows as its config says.
Result<MemoryPlanReport> plan_drafter(const DrafterConfig& drafter, const DrafterWeights& weights,
                                      const InspectOptions& options);

}  // namespace blockdraft
