// Whatever proposes tokens: the drafters, and in tests scripts and random numbers. The output never depends on it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "blockdraft/result.h"
#include "ops/sample.h"
#include "tensor/context.h"
#include "tensor/tensor_view.h"

namespace blockdraft {

// Rows first_row .. first_row + num_rows - 1 of a taps matrix are the taps of a sequence's positions first_position ...
struct TapRows {
  int32_t slot = 0;
  int32_t first_position = 0;
  int32_t first_row = 0;
  int32_t num_rows = 0;
};

// How the drafts of a sequence are drawn. The noise is the target's own for the position where drafts are accepted if
// they equal the target's choice, and another one where their law is wanted.
struct DraftSampling {
  RowSampling row;         // its noise.position is not looked at: each draft has its own
  bool wants_law = false;  // Drafts::laws gets the law of each draft
};

// Asks for `width` drafts: guesses for positions position + 1 .. position + width.
struct DraftRequest {
  int32_t slot = 0;
  int32_t anchor_id = 0;     // newest committed token
  int32_t position = 0;      // of the anchor; the context covers 0 .. position - 1
  int32_t width = 0;         // 1 to trained_width()
  DraftSampling sampling{};  // temperature 0: the best drafts, greedily
};

// What a call proposes. The arrays are the caller's.
struct Drafts {
  std::span<int32_t> ids;     // [sum of requested widths], in the order of the requests
  std::span<int32_t> widths;  // [requests] leading drafts of each that are worth verifying: 0 to the requested width
  // [drafts] or empty: how likely each draft is to be accepted if those before it are. Written by drafters with a
  // confidence head only (DraftModel::has_confidence).
  std::span<float> confidences = {};
  // [drafts] the law that each draft was drawn from, given what precedes it; untouched where none is wanted or the
  // draft was not drawn. Their arrays come from law_memory and live as long. Left out if no request wants laws.
  std::span<ProbabilityRow> laws = {};
  Arena* law_memory = nullptr;
  // Where ops leave the ids; null: in `ids`. Given one, propose() need not wait for a card: `ids` is this array's
  // for_host() (tensor/host_link.h), and whoever waits for it looks for kNotANumber.
  int32_t* device_ids = nullptr;

  int32_t* places() const { return device_ids == nullptr ? ids.data() : device_ids; }
};

// The usual case: every draft is to be verified.
void propose_all(std::span<const DraftRequest> requests, std::span<int32_t> widths);

// Sequences are slots 0 .. max_sequences - 1. Used by one thread at a time.
class DraftSource {
 public:
  virtual ~DraftSource() = default;

  virtual int32_t trained_width() const = 0;
  // The id that stands for a token still to be drafted; -1: it has none.
  virtual int32_t mask_id() const { return -1; }
  // Which decoder layers' outputs it wants as taps, in the order of the columns; empty if it needs none.
  virtual std::span<const int32_t> target_layer_ids() const = 0;

  // Appends to the context of one or several sequences, each at the end of what it holds.
  //   taps: [any, ids * target hidden] f32.
  virtual void extend_context(Context& context, ConstTensorView taps, std::span<const TapRows> rows) = 0;
  // Errors: numeric, if a draft logit is NaN.
  virtual Status propose(Context& context, std::span<const DraftRequest> requests, const Drafts& drafts) = 0;
  // Whether Drafts::device_ids is heeded, and which drafts are worth verifying is known beforehand: all of them.
  virtual bool proposes_on_device() const { return false; }
  // Whether drafts are ids, and not kNotANumber. Errors: numeric.
  virtual Status require_numbers(std::span<const int32_t>) const { return {}; }
  // Forgets the sequence.
  virtual void reset(int32_t slot) = 0;

  // Bytes of law_memory that so many drafts with laws take at most. 0: the source gives no laws, and an engine refuses
  // requests that want them.
  virtual size_t law_bytes(int64_t) const { return 0; }

  virtual size_t state_bytes() const = 0;
  virtual size_t scratch_bytes(int32_t num_threads) const = 0;  // arena bytes that a call takes at most
};

}  // namespace blockdraft
