#include "engine/memory_plan.h"

#include <algorithm>

#include "draft/context_kv.h"
#include "engine/tap_backlog.h"
#include "ops/sample.h"
#include "tensor/paged_kv.h"

namespace blockdraft {

int32_t max_target_rows(const CycleLimits& limits) { return std::max(kPrefillRows, limits.max_rows()); }

std::vector<PlanItem> MemoryPlan::items() const {
  std::vector<PlanItem> items = {{"target pages", target_pages},
                                 {"context pages", context_pages},
                                 {"taps", prefill_taps + cycle_taps},
                                 {"scratch", scratch}};
  if (waiting_taps > 0) items.push_back({"taps that wait", waiting_taps});
  if (link > 0) items.push_back({"numbers between CPU and card", link});
  if (laws > 0) items.push_back({"laws of drafts", laws});
  return items;
}

LinkSizes plan_link(const CycleLimits& limits, int64_t max_positions, int64_t logit_columns) {
  // Context, block and verify rows each with ids, positions and the row that they come from; no block is longer than
  // its drafts and an anchor. A pass over the context may begin in the middle of a sequence.
  const int64_t rows = std::max(limits.max_rows(), kPrefillRows) + limits.max_sequences * TapBacklog::kRows;
  const int64_t pages = (max_positions + kPageSize - 1) / kPageSize;
  const int64_t sequences = 2 * int64_t{limits.max_sequences} + rows / kContextRows + 1;
  const int64_t integers = 16 * rows + 3 * sequences * (pages + 2);
  constexpr size_t kGaps = size_t{64} << 10;  // between arrays, each of which begins at an address of its own
  constexpr int64_t kCopied = 4096;  // numbers of a row that laws may need: candidates of a row and their scores
  const size_t samplings = 4 * static_cast<size_t>(rows) * sizeof(RowSampling);
  return {.send_bytes = static_cast<size_t>(integers) * sizeof(int32_t) + samplings + kGaps,
          .receive_bytes = 4 * static_cast<size_t>(rows) * sizeof(int32_t) + kGaps,
          .cpu_bytes =
              2 * static_cast<size_t>(kLogitRows * logit_columns + kCopied * rows) * sizeof(float) + samplings + kGaps};
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
