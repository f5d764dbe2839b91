// Decodes batches of token sequences with a target and, usually, a drafter. Knows ids only; text is the api's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/thread_pool.h"
#include "blockdraft/result.h"
#include "draft/draft_source.h"
#include "engine/cycle.h"
#include "engine/cycle_dump.h"
#include "engine/memory_plan.h"
#include "engine/sequence.h"
#include "engine/stats.h"
#include "engine/token_chooser.h"
#include "nn/output_head.h"
#include "target/target.h"
#include "tensor/buffer.h"
#include "tensor/context.h"
#include "tensor/cublas_lt.h"
#include "tensor/host_link.h"

namespace blockdraft {

// Of measuring what cycles cost: no cycle begins later. Cycles that decide are run in any case, four of them.
inline constexpr double kProfileTime_s = 0.1;

struct TokenEngineOptions {
  CudaDevice* device = nullptr;  // where target and drafter are; null: on the CPU. Borrowed
  int32_t threads = 0;           // 0: one per core
  bool pin_threads = false;      // base/thread_pool.h
  CpuIsa isa = best_cpu_isa();
  int32_t max_sequences = 1;  // decoded at once
  int64_t max_positions = 0;  // prompt and text of a sequence together
  int32_t max_width = 0;      // largest width that a request may ask for
  int64_t num_choices = 0;    // ids at and above are never emitted

  CycleLimits cycle_limits() const { return {.max_sequences = max_sequences, .max_width = max_width}; }
};

// Borrows target and drafter (null: plain decoding). Not thread-safe.
class TokenEngine {
 public:
  static Result<std::unique_ptr<TokenEngine>> open(Target& target, DraftSource* drafter,
                                                   const TokenEngineOptions& options);

  // Decodes all requests, max_sequences at a time: one joins as soon as another has ended. Results are in the order
  // of the requests. Before the first text of adaptive width of each CostKind the costs of cycles are measured, on the
  // beginning of its prompt, for about kProfileTime_s or some cycles if these take longer. Errors before anything is
  // decoded: limit_exceeded, invalid_argument, mismatch (ratio acceptance of drafts without laws), out_of_memory (for
  // laws, and for taps that wait); afterwards, the measurement included: numeric, mismatch (a draft source that gives
  // laws left one out).
  Result<std::vector<TokenResult>> run(std::span<const TokenRequest> requests);

  // The memory that adaptive widths need, once: taps that wait (engine/tap_backlog.h). run() does it by itself.
  // Errors: out_of_memory.
  Status reserve_backlog();

  // For measurements (engine/accept_pattern.h).
  void set_accept_pattern(AcceptPattern pattern) { cycle_->set_accept_pattern(std::move(pattern)); }

  // From now on chosen cycles are written to files. Decodes one sequence at a time.
  void dump_to(CycleDump dump);

  const DraftCounts& draft_counts() const { return cycle_->draft_counts(); }  // of all runs
  int64_t num_graphs() const { return cycle_->num_graphs(); }                 // cycles captured, of all runs
  const RunTimes& times() const { return times_; }                            // of the newest run
  const MemoryPlan& memory_plan() const { return plan_; }
  int32_t num_threads() const { return threads_.num_threads(); }
  CpuIsa isa() const { return options_.isa; }

 private:
  class CostTrial;
  class ScratchTrial;
  TokenEngine(Target& target, DraftSource* drafter, const TokenEngineOptions& options);
  Status allocate();
  Status open_link();
  void open_prompt_products();
  Status measure_scratch();
  Status validate(const TokenRequest& request, size_t index) const;
  int64_t text_limit(const TokenRequest& request) const;  // tokens that its text may have
  int64_t max_cycles(std::span<const TokenRequest> requests) const;
  Status decode_all(std::span<const TokenRequest> requests, std::vector<TokenResult>& results);
  Status reserve_laws(std::span<const TokenRequest> requests);
  Status prepare_widths(std::span<const TokenRequest> requests);
  Status measure_costs(const TokenRequest& like);
  Status admit(Sequence& sequence);
  Status run_cycle(std::span<Sequence* const> batch);
  Status prefill(Sequence& sequence, int32_t& first_choice);
  Status read_prompt(Sequence& sequence, TensorView hidden);  // [1, hidden] of its last position
  Status begin_pass();                                        // what earlier ones sent is no longer needed
  void release(Sequence& sequence);

  Target& target_;
  DraftSource* drafter_;
  TokenEngineOptions options_;
  ThreadPool threads_;
  OutputHead head_;
  TokenChooser first_chooser_;  // of the tokens that follow prompts
  MemoryPlan plan_;
  std::unique_ptr<Arena> arena_, cpu_arena_;  // the latter of engines on a card
  std::shared_ptr<HostLink> link_;
  std::shared_ptr<CublasLt> prompt_products_;  // null: the kernels of decoding read prompts
  Buffer prefill_taps_;                        // [kPrefillRows, taps]
  std::unique_ptr<Cycle> cycle_;
  std::optional<CycleDump> dump_;
  Context context_;
  RunTimes times_;
};

}  // namespace blockdraft
