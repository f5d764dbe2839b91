// One propose + verify round for a batch of sequences.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "blockdraft/result.h"
#include "draft/draft_source.h"
#include "engine/accept_pattern.h"
#include "engine/cycle_costs.h"
#include "engine/draft_counts.h"
#include "engine/sequence.h"
#include "engine/stats.h"
#include "engine/tap_backlog.h"
#include "engine/token_chooser.h"
#include "engine/width_policy.h"
#include "nn/batch.h"
#include "nn/output_head.h"
#include "target/target.h"
#include "tensor/buffer.h"
#include "tensor/context.h"

namespace blockdraft {

class CycleGraphs;

struct CycleLimits {
  int32_t max_sequences = 1;
  int32_t max_width = 0;  // of any sequence; 0: plain decoding

  int32_t max_rows() const { return max_sequences * (max_width + 1); }
};

// The arrays of a cycle, sized once: run() allocates nothing, unless it is recorded or the expected acceptance is asked
// for, or it is a card's: the key of its graph (engine/cycle_graphs.h), and the graph once.
// Borrows target and draft source (null: plain decoding, the same cycle with width 0).
class Cycle {
 public:
  Cycle(Target& target, DraftSource* drafter, const OutputHead& head, const CycleLimits& limits, Buffer taps);

  // Advances every sequence by one cycle; a sequence that reaches its end is marked `ended`, its slot stays in use.
  // Each sequence is asked for the width of its request, or what the policy says if that adapts, less where its end is
  // near. Errors: numeric; mismatch, if a draft lacks the law that ratio acceptance needs.
  Status run(Context& context, std::span<Sequence* const> batch, RunTimes& times);

  // Makes room for the laws of drafts, which ratio acceptance needs. Once is enough.  Errors: out_of_memory.
  Status reserve_laws();
  size_t law_bytes() const { return law_memory_.size_bytes(); }

  // Makes room for taps that wait, which sequences of adaptive width need. Once is enough.  Errors: out_of_memory.
  // device: where taps lie, null: on the CPU.
  Status reserve_backlog(CudaDevice* device);
  size_t backlog_bytes() const { return backlog_.size_bytes(); }
  int64_t tap_columns() const { return taps_.dim(1); }
  int32_t max_context_rows() const;  // that one cycle may take in

  // What chooses the widths of a kind of requests; a batch goes by its costliest kind. Null: there is none yet.
  WidthPolicy* policy(CostKind kind);
  void set_policy(CostKind kind, WidthPolicy policy);

  // For measurements: the text is no longer the target's (engine/accept_pattern.h).
  void set_accept_pattern(AcceptPattern pattern) { accept_pattern_ = std::move(pattern); }

  // Forgets what waits of a slot.
  void release(int32_t slot) { backlog_.reset(slot); }

  const DraftCounts& draft_counts() const { return draft_counts_; }  // of all cycles that compared drafts
  const CycleWork& work() const { return work_; }                    // of the newest cycle
  int64_t num_graphs() const;                                        // captured in all; on a CPU 0

  // Beside those of target and drafter.
  static size_t scratch_bytes(const OutputHead& head, int64_t hidden_size, const CycleLimits& limits);

 private:
  void choose_widths(std::span<Sequence* const> batch);
  WidthPolicy* policy_of(std::span<Sequence* const> batch);
  void plan_work(const Context& context, std::span<Sequence* const> batch);
  Status queue(Context& context, std::span<Sequence* const> batch, const std::function<Status()>& work);
  std::vector<int32_t> shape_of(std::span<Sequence* const> batch) const;
  void extend_context(Context& context, std::span<Sequence* const> batch);
  Status propose(Context& context, std::span<Sequence* const> batch);
  Status require_laws() const;
  void drop_doubtful();
  void verify(Context& context, std::span<Sequence* const> batch);
  void lay_out_blocks(std::span<Sequence* const> batch);
  const int32_t* ids_on_device(Context& context);
  Status settle(std::span<Sequence* const> batch);
  Status follow_pattern(std::span<Sequence* const> batch);
  void accept(std::span<Sequence* const> batch);
  void learn(std::span<Sequence* const> batch, const RunTimes& times);
  void count(std::span<const int32_t> drafts, int32_t accepted);
  void commit(Sequence& sequence, size_t index, std::span<const int32_t> choices);

  Target& target_;
  DraftSource* drafter_;
  const OutputHead& head_;
  CycleLimits limits_;
  Buffer taps_memory_;
  int64_t hidden_size_;
  std::span<const int32_t> tap_layer_ids_;
  TokenChooser chooser_;
  DraftCounts draft_counts_;
  Arena law_memory_{Buffer{}};
  TapBacklog backlog_;
  std::array<std::optional<WidthPolicy>, kNumCostKinds> policies_;
  std::optional<AcceptPattern> accept_pattern_;
  TensorView taps_;                      // [max_rows, taps], of the newest verify rows
  std::shared_ptr<CycleGraphs> graphs_;  // of a card

  // Of the cycle in progress, one entry a sequence ...
  CycleWork work_;
  bool drafts_stay_ = false;         // on the card, unseen by the CPU until the end of the cycle
  int32_t* draft_places_ = nullptr;  // then: where
  std::vector<WidthSeat> seats_;
  std::vector<int32_t> asked_widths_;   // of the drafter
  std::vector<int32_t> widths_;         // the same, then less what is not worth verifying
  std::vector<int32_t> kept_widths_;    // of requests_: drafts worth verifying
  std::vector<DraftRequest> requests_;  // only of those with a width
  std::vector<TapRows> tap_rows_;       // of taps_
  std::vector<TapRows> waiting_rows_;   // of the backlog
  std::vector<SequenceRows> verify_rows_;
  std::vector<VerifiedBlock> blocks_;
  std::vector<int32_t> accepted_;  // leading drafts that are kept
  // ... and one entry a row.
  std::vector<int32_t> drafts_;        // sum of widths
  std::vector<ProbabilityRow> laws_;   // of drafts_, if there is room for laws
  std::vector<double> chances_;        // of drafts_, where they are asked for
  std::vector<int32_t> verify_ids_;    // anchor and drafts of each sequence
  std::vector<int32_t> draft_of_row_;  // index in drafts_, -1 for anchors
  std::vector<int32_t> row_numbers_;
  std::vector<int32_t> choices_;  // the target's token after each verify row
};

}  // namespace blockdraft
