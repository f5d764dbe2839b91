// What an engine allocates beside its models' weights, from shapes alone: known before anything is opened.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "draft/draft_model.h"
#include "engine/cycle.h"
#include "nn/output_head.h"
#include "ops/linear.h"
#include "target/target.h"

namespace blockdraft {

// Prompts are read in passes of so many positions on a fixed grid, so that memory does not grow with their length.
inline constexpr int32_t kPrefillRows = kPromptRows;

// Rows that a target must take in one pass.
int32_t max_target_rows(const CycleLimits& limits);

struct PlanItem {
  std::string name;
  size_t size_bytes = 0;
};

struct MemoryPlan {
  size_t target_pages = 0;
  size_t context_pages = 0;
  size_t prefill_taps = 0;
  size_t cycle_taps = 0;
  size_t scratch = 0;
  size_t waiting_taps = 0;  // once some request's width adapts
  size_t laws = 0;          // of drafts, once some request wants ratio acceptance; the CPU's
  size_t link = 0;          // of a card: what it and the CPU tell each other, on either side

  std::vector<PlanItem> items() const;  // for people and programs: taps together
};

// What a card's engine has on the side of the CPU.
struct LinkSizes {
  size_t send_bytes = 0;  // of a cycle or a pass over a prompt, at most
  size_t receive_bytes = 0;
  size_t cpu_bytes = 0;  // scratch of the CPU; of logits that it never looks at it is not touched
};
// logit_columns: of a row of the target's logits.
LinkSizes plan_link(const CycleLimits& limits, int64_t max_positions, int64_t logit_columns);

// What the models take, and what the engine's own arrays depend on.
struct ModelSizes {
  TargetMemory target;
  DrafterMemory drafter;    // zero without a drafter
  int64_t num_taps = 0;     // target layers that the drafter reads
  int64_t hidden_size = 0;  // of the target
  OutputHead head;          // the target's; only its shape counts
};
MemoryPlan plan_memory(const ModelSizes& models, const CycleLimits& limits);

}  // namespace blockdraft
