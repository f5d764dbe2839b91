// The drafter alone, for an engine of your own: it hands over hidden states of its model and gets drafts back. Neither
// blockdraft's engine nor its target models take part; the CMake target blockdraft::drafter holds neither.
//
//   auto drafter = blockdraft::Drafter::open("Qwen3-8B-DFlash", {.max_sequences = 8, .max_positions = 32768},
//                                            {.embed_tokens = embed, .lm_head = head, .num_layers = 36});
//   if (!drafter) return fail(drafter.error().message);
//   auto sequence = drafter->new_sequence();
//   drafter->extend_context(*sequence, prompt_taps, 0);             // after prefill: positions 0 .. n - 1
//   std::vector<blockdraft::Proposal> proposals;
//   const blockdraft::DraftQuery query{*sequence, first_token, n, drafter->trained_width()};
//   drafter->propose({&query, 1}, proposals);                       // guesses for positions n + 1 ...
//   ...                                                             // run the anchor and the drafts, accept (accept.h)
//   drafter->extend_context(*sequence, taps_of_kept_rows, n);       // the anchor and the accepted drafts; and again
//
// Words: the target is your model. A tap is one of its hidden states, the taps of a position are those of all layers
// that the drafter was trained on. The anchor is the newest token of a sequence: committed, but not yet run through the
// target, so that the context covers positions 0 .. anchor position - 1. Positions are absolute and 0-based.
// examples/foreign_host is a whole program.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "blockdraft/result.h"
#include "blockdraft/sampling.h"

namespace blockdraft {

enum class MatrixType { bf16, f16, f32, fp8_e4m3 };

// A matrix [rows, columns] in your memory, row-major without gaps. Element (r, c) is code(r, c), for fp8_e4m3
// code(r, c) * row_scales[r]. `data` needs no alignment.
struct MatrixView {
  const void* data = nullptr;
  MatrixType type = MatrixType::bf16;
  int64_t rows = 0;
  int64_t columns = 0;
  const float* row_scales = nullptr;  // [rows] with fp8_e4m3, null with every other type
};

// What the drafter borrows of the target. The memory behind the views must stay valid and unchanged until the Drafter
// is destroyed. A target with tied embeddings gives the same view twice.
struct TargetTensors {
  MatrixView embed_tokens;       // [vocabulary, hidden size]
  MatrixView lm_head;            // [vocabulary, hidden size]
  int64_t num_layers = 0;        // decoder layers of the target
  int64_t num_real_ids = 0;      // ids from here on are padding of the tables and never drafted; 0: there are none
  float embedding_scale = 1.0f;  // what the target multiplies embedding rows by
};

struct DrafterOptions {
  int32_t threads = 0;                // 0: one per physical core; at most 1024
  int32_t max_sequences = 1;          // open at once, and in one call; at most 1024
  int64_t max_positions = 0;          // of a sequence, drafts included; at most 2^24. 0: the smaller of the drafter's
                                      // max_position_embeddings and 4096
  float confidence_threshold = 0.0f;  // 0 to 1; from the first draft with less confidence on, drafts do not count as
                                      // worth verifying. Above 0 the drafter must have a confidence head
  std::string cpu_isa;                // kernels to use, as in EngineOptions (engine.h). Other kernels, other bits
};

// What is open. All facts are of the drafter's files unless an option is named.
struct DrafterInfo {
  std::string kind;                       // "DFlash", "DFlash2" or "DSpark"
  int32_t trained_width = 0;              // drafts of a block of the trained size: the largest width of a query
  std::vector<int32_t> target_layer_ids;  // whose hidden states make up the taps, in the order of the columns: i is the
                                          // output of decoder layer i (0-based, the residual stream before any norm
                                          // that follows), -1 the scaled embedding rows
  int64_t hidden_size = 0;                // of the target
  int64_t tap_columns = 0;                // numbers a position: target_layer_ids.size() * hidden_size
  bool has_confidence = false;

  // The block that the drafter runs: the anchor's row, then rows of the mask token. In place, row i guesses the token
  // of its own position and row 0 is not used, so that width w takes w + 1 rows; shifted, row i guesses the token after
  // it, and w rows do.
  int32_t block_size = 0;
  int32_t mask_token_id = 0;
  bool shifted = false;
  int32_t window = 0;  // context positions that some layer can see at most, the row's own included; 0: all of them

  int32_t threads = 0;
  std::string cpu_isa;  // "portable", "avx2", "avx512" or "avx512_bf16"
  int32_t max_sequences = 0;
  int64_t max_positions = 0;
  int64_t mapped_bytes = 0;   // weights, mapped from their files
  int64_t packed_bytes = 0;   // weights in memory in the order that products read
  int64_t context_bytes = 0;  // K/V of all sequences
  int64_t scratch_bytes = 0;
  int64_t law_bytes = 0;              // laws of drafts: allocated by the first query that wants them, 0 before
  std::vector<std::string> warnings;  // what the config leaves open or says twice, one line each
};

// Never used twice by one Drafter, so that an id that was released is known to be stale.
enum class SequenceId : int64_t {};

// Rows first_row .. first_row + num_rows - 1 of a taps matrix belong to positions first_position ... of a sequence.
struct ContextRows {
  SequenceId sequence{};
  int32_t first_position = 0;  // the end of the sequence's context
  int64_t first_row = 0;
  int64_t num_rows = 0;
};

// Asks for guesses for positions position + 1 .. position + width.
struct DraftQuery {
  SequenceId sequence{};
  int32_t anchor_id = 0;  // 0 to num_real_ids - 1
  int32_t position = 0;   // of the anchor: the end of the sequence's context
  int32_t width = 0;      // 1 to trained_width()
  // How drafts are drawn; at temperature 0 they are the drafter's most likely ones. With Acceptance::coupled they are
  // drawn with the noise of choose_token (accept.h), with Acceptance::ratio with noise of their own and handed out with
  // their laws. DFlash draws after all filters, DFlash2 and DSpark by the temperature alone.
  Sampling sampling{};
};

struct Proposal {
  std::vector<int32_t> ids;        // [width of the query] target ids
  int32_t kept_width = 0;          // leading drafts that are worth verifying: all, or those the threshold leaves
  std::vector<float> confidences;  // [width], 0 to 1: that a draft is accepted if those before it are; empty without a
                                   // confidence head
  std::vector<TokenLaw> laws;      // [width] what each draft was drawn from, given those before it, if drawn with
                                   // Acceptance::ratio; else empty. Their arrays are the drafter's, until the next
                                   // propose() and as long as the Drafter lives
};

// Owns the drafter's weights, the context K/V of its sequences, and threads. Moves only. One call at a time; different
// drafters are independent. What is proposed for a sequence depends neither on the other sequences of a call nor on
// those that are open. A call that returns an error has changed nothing, except that the proposals of a failed
// propose() are unspecified. Views and spans of a call are read during the call only, those of TargetTensors always.
class Drafter {
 public:
  // `folder` in Hugging Face layout. Errors: an option or view out of range (invalid_argument, naming it); what does
  // not load; a drafter that does not fit the target (mismatch); out_of_memory.
  static Result<Drafter> open(const std::filesystem::path& folder, const DrafterOptions& options,
                              const TargetTensors& target);

  Drafter(Drafter&&) noexcept;
  Drafter& operator=(Drafter&&) noexcept;
  ~Drafter();

  // A sequence with an empty context. limit_exceeded if max_sequences are open.
  Result<SequenceId> new_sequence();
  // Errors of this and all other calls: invalid_argument for an id that is not open.
  Status release(SequenceId sequence);

  // Appends rows to a context: taps [rows, tap_columns] float32, row-major, of positions first_position ...; call it
  // with any number of rows at a time, the result is the same. Errors: invalid_argument for a size that is no multiple
  // of tap_columns and a first_position that is not the end of the context; limit_exceeded beyond max_positions.
  Status extend_context(SequenceId sequence, std::span<const float> taps, int32_t first_position);
  // The same for several sequences in one pass over the weights, each named once: after a verification, the kept rows
  // of a batch. Also invalid_argument for rows outside of `taps`.
  Status extend_context(std::span<const float> taps, std::span<const ContextRows> rows);

  // One block pass for all queries, each of another sequence. `proposals` is resized to the queries, in their order;
  // its memory is used again. Errors: invalid_argument for a query out of range, naming it; limit_exceeded if position
  // + width is not below max_positions; numeric if a draft logit is not a number; out_of_memory for laws.
  Status propose(std::span<const DraftQuery> queries, std::vector<Proposal>& proposals);

  // Drops the context from `position` on, so that it can be extended from there with other taps. Rejected drafts need
  // none of this: they never were in the context. Errors: invalid_argument for a position beyond the context;
  // limit_exceeded for one so far back that the sliding windows have let go of what its rows would see, naming the
  // earliest that is left. With `window` 0 nothing is let go, and every position down to 0 will do.
  Status rewind(SequenceId sequence, int32_t position);

  Result<int32_t> context_length(SequenceId sequence) const;  // positions in the context: where it is extended next

  const DrafterInfo& info() const;
  int32_t trained_width() const { return info().trained_width; }
  std::span<const int32_t> target_layer_ids() const { return info().target_layer_ids; }

 private:
  struct State;
  explicit Drafter(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace blockdraft
