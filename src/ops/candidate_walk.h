// DFlash2's candidate selector: one path through the candidates of a block's rows (spec 4.2).
#pragma once

#include <cstdint>

#include "tensor/context.h"
#include "tensor/tensor_view.h"
#include "tensor/weight_view.h"

namespace blockdraft {

// For each sequence, for its rows j in order, with prev = the sequence's anchor before the first of them:
//   scores[j, c] = unary[j, c] + sum_m predecessor[prev, m] * edge[j, m] * successor[candidates[j, c], m]
//   drafts[j] = prev = the candidate with the largest scores[j, c] + noise[j, c], the first of equals
//                    (kNotANumber for the row and those after it in the sequence if any of its scores is NaN)
// Rows of sequence i are first_row[i] .. first_row[i + 1] - 1.
//   candidates: [rows * K] ids below the codebooks' rows, or kNotANumber throughout a row: that row and those after it
//   in the sequence become kNotANumber.  unary, scores: [rows, K] f32.  noise: [rows * K], null: none.  edge: [rows,
//   rank] f32. predecessor, successor: [ids, rank].  anchors: [num_sequences].  drafts: [rows].
struct CandidateWalkArgs {
  int32_t* drafts = nullptr;
  TensorView scores;
  const int32_t* candidates = nullptr;
  ConstTensorView unary;
  const float* noise = nullptr;
  ConstTensorView edge;
  WeightView predecessor;
  WeightView successor;
  const int32_t* anchors = nullptr;
  const int32_t* first_row = nullptr;
  int32_t num_sequences = 0;
};
void candidate_walk(Context& context, const CandidateWalkArgs& args);
size_t candidate_walk_scratch_bytes(int32_t num_threads, int64_t rank);

namespace cpu {
void candidate_walk(Context& context, const CandidateWalkArgs& args);
}
namespace cu {
void candidate_walk(Context& context, const CandidateWalkArgs& args);
}

}  // namespace blockdraft
