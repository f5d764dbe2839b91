#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/argmax.h"
#include "ops/candidate_walk.h"
#include "ops/cpu/decode.h"
#include "ops/cpu/lanes.h"

namespace blockdraft::cpu {

namespace {

void read_row(const WeightView& table, int32_t id, float* values) {
  CHECK(id >= 0 && id < table.out_features);
  decode_row(table, id, values);
}

int64_t best(const float* scores, const float* noise, int64_t k) {
  if (noise == nullptr) return std::max_element(scores, scores + k) - scores;
  int64_t place = 0;
  for (int64_t c = 1; c < k; ++c) {
    if (scores[c] + noise[c] > scores[place] + noise[place]) place = c;
  }
  return place;
}

// A broken codebook would pass for a choice of the first candidate, since nothing compares greater than NaN, and scores
// whose largest is infinite have no law. Single candidates may be impossible.
bool have_a_law(const float* scores, int64_t count) {
  float largest = -std::numeric_limits<float>::infinity();
  for (int64_t c = 0; c < count; ++c) {
    if (std::isnan(scores[c])) return false;
    largest = std::max(largest, scores[c]);
  }
  return std::isfinite(largest);
}

// The step from prev to row j: its scores, and the best candidate.
int32_t step(const CandidateWalkArgs& args, int64_t j, int32_t prev, float* edge, float* codes) {
  const int64_t k = args.unary.dim(1);
  const int64_t rank = args.edge.dim(1);
  const int32_t* candidates = args.candidates + j * k;
  float* scores = args.scores.row(j);
  read_row(args.predecessor, prev, edge);
  for (int64_t m = 0; m < rank; ++m) edge[m] *= args.edge.row(j)[m];
  for (int64_t c = 0; c < k; ++c) {
    read_row(args.successor, candidates[c], codes);
    scores[c] = args.unary.row(j)[c] + dot(edge, codes, rank);
  }
  if (!have_a_law(scores, k)) return kNotANumber;
  return candidates[best(scores, args.noise == nullptr ? nullptr : args.noise + j * k, k)];
}

}  // namespace

void candidate_walk(Context& context, const CandidateWalkArgs& args) {
  const ArenaScope scope(*context.arena);
  const int64_t rank = args.edge.dim(1);
  const TensorView scratch = context.arena->take_f32({2 * context.threads->num_threads(), rank});
  context.threads->parallel_for(args.num_sequences, [&](int64_t sequence, int thread) {
    float* edge = scratch.row(2 * thread);
    float* codes = scratch.row(2 * thread + 1);
    int32_t prev = args.anchors[sequence];
    for (int64_t j = args.first_row[sequence]; j < args.first_row[sequence + 1]; ++j) {
      const bool is_number = prev != kNotANumber && args.candidates[j * args.unary.dim(1)] != kNotANumber;
      prev = is_number ? step(args, j, prev, edge, codes) : kNotANumber;
      args.drafts[j] = prev;
    }
  });
}

}  // namespace blockdraft::cpu

namespace blockdraft {

size_t candidate_walk_scratch_bytes(int32_t num_threads, int64_t rank) {
  return arena_bytes_f32(2 * static_cast<int64_t>(num_threads) * rank);
}

}  // namespace blockdraft
