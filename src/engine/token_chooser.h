// From the hidden rows of a target's pass to the tokens that it chooses, and to how many drafts are kept.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "blockdraft/result.h"
#include "engine/sequence.h"
#include "nn/output_head.h"
#include "ops/sample.h"
#include "tensor/context.h"
#include "tensor/tensor_view.h"

namespace blockdraft {

// The rows of one sequence: row 0 follows its newest token, row j follows draft j - 1.
struct VerifiedBlock {
  Sequence* sequence = nullptr;
  std::span<const int32_t> drafts;
  std::span<const ProbabilityRow> laws;  // [drafts], of requests that want laws only
  // [drafts] or empty: gets the probability that the draft is accepted if those before it are. Left alone behind a
  // draft that ratio acceptance did not keep.
  std::span<double> chances = {};
};

// Borrows the head. Allocates nothing once made, but where chances are wanted, and on a card for rows of the CPU.
class TokenChooser {
 public:
  TokenChooser(const OutputHead& head, int32_t max_rows) : head_(head) { rows_.reserve(static_cast<size_t>(max_rows)); }

  // Queues the choices; settle() is to be called once they are there (synchronize() of tensor/host_link.h).
  // choices: [rows] the target's token of each row; with ratio acceptance, what takes the draft's place where it is not
  //   kept, and nothing of use after that.  accepted: [blocks] leading drafts that are kept.
  // hidden: [rows, hidden] f32, block after block, a row more than it has drafts.
  // The rows of a sequence are chosen as if its drafts before them were part of its text: where that matters
  // (chooses_on_cpu), the drafts must be there.
  void choose(Context& context, ConstTensorView hidden, std::span<const VerifiedBlock> blocks,
              std::span<int32_t> choices, std::span<int32_t> accepted);
  // With the same blocks, choices and accepted.  Errors: numeric.
  Status settle(std::span<const VerifiedBlock> blocks, std::span<int32_t> choices, std::span<int32_t> accepted);

  // Whether rows of such a request are chosen by the CPU, on a card too, which is waited for: those that bias or
  // penalties change, and those that laws of drafts decide.
  static bool chooses_on_cpu(const TokenRequest& request);

  static size_t scratch_bytes(const OutputHead& head, int64_t rows);

 private:
  struct Row {
    size_t block = 0;
    size_t index = 0;  // in its block
  };
  void draw_on_cpu(Context& context, std::span<const VerifiedBlock> blocks, std::span<const Row> group,
                   const TensorView& logits, std::span<int32_t> choices, std::span<int32_t> accepted) const;
  void draw_on_card(Context& context, std::span<const VerifiedBlock> blocks, int64_t first, const TensorView& logits,
                    int32_t* ids, std::span<int32_t> accepted);
  void take_rows_of_cpu(const Context& context, std::span<const VerifiedBlock> blocks, int64_t first,
                        const TensorView& logits, std::span<int32_t> accepted);
  void test_draft(const VerifiedBlock& block, size_t index, float* scores, int32_t& choice, int32_t& accepted) const;
  void note_chance(const VerifiedBlock& block, size_t index, float* scores) const;

  const OutputHead& head_;
  std::vector<Row> rows_;

  // On a card, what the CPU chose: row numbers and ids.
  struct Choice {
    size_t row = 0;
    int32_t id = 0;
  };
  std::vector<Choice> choices_of_cpu_;
};

}  // namespace blockdraft
