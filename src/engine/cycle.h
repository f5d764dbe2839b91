// One propose + verify round for a batch of sequences.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "blockdraft/result.h"
#include "draft/draft_source.h"
#include "engine/draft_counts.h"
#include "engine/sequence.h"
#include "engine/stats.h"
#include "engine/token_chooser.h"
#include "nn/batch.h"
#include "nn/output_head.h"
#include "target/target.h"
#include "tensor/buffer.h"
#include "tensor/context.h"

namespace blockdraft {

struct CycleLimits {
  int32_t max_sequences = 1;
  int32_t max_width = 0;  // of any sequence; 0: plain decoding

  int32_t max_rows() const { return max_sequences * (max_width + 1); }
};

// The arrays of a cycle, sized once: run() allocates nothing, unless it is recorded or the expected acceptance is asked
// for.
// Borrows target and draft source (null: plain decoding, the same cycle with width 0).
class Cycle {
 public:
  Cycle(Target& target, DraftSource* drafter, const OutputHead& head, const CycleLimits& limits, Buffer taps);

  // Advances every sequence by one cycle; a sequence that reaches its end is marked `ended`, its slot stays in use.
  // Each sequence is asked for the width of its request, less where its end is near. Errors: numeric; mismatch,
  // if a draft lacks the law that ratio acceptance needs.
  Status run(Context& context, std::span<Sequence* const> batch, RunTimes& times);

  // Makes room for the laws of drafts, which ratio acceptance needs. Once is enough.  Errors: out_of_memory.
  Status reserve_laws();
  size_t law_bytes() const { return law_memory_.size_bytes(); }

  const DraftCounts& draft_counts() const { return draft_counts_; }  // of all cycles

  // Beside those of target and drafter.
  static size_t scratch_bytes(const OutputHead& head, int64_t hidden_size, const CycleLimits& limits);

 private:
  void choose_widths(std::span<Sequence* const> batch);
  void extend_context(Context& context, std::span<Sequence* const> batch);
  Status propose(Context& context, std::span<Sequence* const> batch);
  Status require_laws() const;
  void drop_doubtful();
  Status verify(Context& context, std::span<Sequence* const> batch);
  void accept(std::span<Sequence* const> batch);
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
  TensorView taps_;  // [max_rows, taps], of the newest verify rows

  // Of the cycle in progress, one entry a sequence ...
  std::vector<int32_t> asked_widths_;   // of the drafter
  std::vector<int32_t> widths_;         // the same, then less what is not worth verifying
  std::vector<int32_t> kept_widths_;    // of requests_: drafts worth verifying
  std::vector<DraftRequest> requests_;  // only of those with a width
  std::vector<TapRows> tap_rows_;
  std::vector<SequenceRows> verify_rows_;
  std::vector<VerifiedBlock> blocks_;
  std::vector<int32_t> accepted_;  // leading drafts that are kept
  // ... and one entry a row.
  std::vector<int32_t> drafts_;       // sum of widths
  std::vector<ProbabilityRow> laws_;  // of drafts_, if there is room for laws
  std::vector<double> chances_;       // of drafts_, where they are asked for
  std::vector<int32_t> verify_ids_;   // anchor and drafts of each sequence
  std::vector<int32_t> row_numbers_;
  std::vector<int32_t> choices_;  // the target's token after each verify row
};

}  // namespace blockdraft
