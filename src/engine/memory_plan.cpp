#include "engine/memory_plan.h"

#include <algorithm>

namespace blockdraft {

int32_t max_target_rows(const CycleLimits& limits) { return std::max(kPrefillRows, limits.max_rows()); }

std::vector<PlanItem> MemoryPlan::items() const {
  std::vector<PlanItem> items = {{"target pages", target_pages},
                                 {"context pages", context_pages},
                                 {"taps", prefill_taps + cycle_taps},
                                 {"scratch", scratch}};
  if (waiting_taps > 0) items.push_back({"taps that wait", waiting_taps});
  if (laws > 0) items.push_back({"laws of drafts", laws});
  return items;
}

MemoryPlan plan_memory(const ModelSizes& models, const CycleLimits& limits) {
  const auto taps_bytes = [&](int64_t rows) {
    return static_cast<size_t>(rows * models.num_taps * models.hidden_size) * sizeof(float);
  };
  return {.target_pages = models.target.state_bytes,
          .context_pages = models.drafter.state_bytes,
          .prefill_taps = taps_bytes(kPrefillRows),
          .cycle_taps = taps_bytes(limits.max_rows()),
          // The models take turns.
          .scratch = Cycle::scratch_bytes(models.head, models.hidden_size, limits) +
                     std::max(models.target.scratch_bytes, models.drafter.scratch_bytes)};
}

}  // namespace blockdraft
