#include "ops/argmax.h"
#include "ops/candidate_walk.h"
#include "ops/cuda/best_key.cuh"
#include "ops/cuda/decode.cuh"
#include "ops/cuda/launch.h"
#include "ops/cuda/overlap.cuh"
#include "ops/cuda/rows.cuh"

// A block a sequence: the walk is a chain. Of one step the candidates are dealt out to the warps.

namespace blockdraft::cu {

namespace {

constexpr int kWarps = 16;

struct Walk {
  int32_t* drafts;
  float* scores;
  int64_t scores_stride;
  const int32_t* candidates;
  const float* unary;
  int64_t unary_stride;
  const float* noise;
  const float* edge;
  int64_t edge_stride;
  WeightView predecessor;
  WeightView successor;
  const int32_t* anchors;
  const int32_t* first_row;
  int k;
  int rank;
};

__device__ float element(const WeightView& table, int32_t id, int m) {
  return element_before_row_scale(table, id, m) * row_scale(table, id);
}

// scores[c] of row j after prev, in shared memory and in place.
__device__ void score_row(const Walk& walk, int64_t j, int32_t prev, float* edge, float* scores) {
  for (int m = static_cast<int>(threadIdx.x); m < walk.rank; m += kWarps * 32) {
    edge[m] = element(walk.predecessor, prev, m) * walk.edge[j * walk.edge_stride + m];
  }
  __syncthreads();
  const int lane = static_cast<int>(threadIdx.x) % 32;
  for (int c = static_cast<int>(threadIdx.x) / 32; c < walk.k; c += kWarps) {
    const int32_t id = walk.candidates[j * walk.k + c];
    float sum = 0.0f;
    for (int m = lane; m < walk.rank; m += 32) sum = fmaf(edge[m], element(walk.successor, id, m), sum);
    sum = sum_of_warp(sum);
    if (lane != 0) continue;
    scores[c] = walk.unary[j * walk.unary_stride + c] + sum;
    walk.scores[j * walk.scores_stride + c] = scores[c];
  }
  __syncthreads();
}

// By one warp: the best candidate of row j, kNotANumber where the scores have no law.
__device__ int32_t choose(const Walk& walk, int64_t j, const float* scores) {
  BestKey law = kNoKey;
  BestKey best = kNoKey;
  for (int c = static_cast<int>(threadIdx.x); c < walk.k; c += 32) {
    const float noise = walk.noise == nullptr ? 0.0f : walk.noise[j * walk.k + c];
    law = better(law, best_key(scores[c], static_cast<uint32_t>(c)));
    best = better(best, best_key(scores[c] + noise, static_cast<uint32_t>(c)));
  }
  law = best_of_warp(law);
  best = best_of_warp(best);
  if (law == kNotANumberKey || !isfinite(scores[index_of(law)])) return kNotANumber;
  return walk.candidates[j * walk.k + static_cast<int32_t>(index_of(best))];
}

__global__ void candidate_walk_kernel(Walk walk) {
  begin_in_chain();
  extern __shared__ float shared[];
  __shared__ int32_t chosen;
  float* edge = shared;
  float* scores = shared + walk.rank;
  const int64_t sequence = blockIdx.x;
  int32_t prev = walk.anchors[sequence];
  for (int64_t j = walk.first_row[sequence]; j < walk.first_row[sequence + 1]; ++j) {
    if (walk.candidates[j * walk.k] == kNotANumber) prev = kNotANumber;
    if (prev != kNotANumber) {
      score_row(walk, j, prev, edge, scores);
      if (threadIdx.x < 32) {
        const int32_t choice = choose(walk, j, scores);
        if (threadIdx.x == 0) chosen = choice;
      }
      __syncthreads();
      prev = chosen;
    }
    if (threadIdx.x == 0) walk.drafts[j] = prev;
  }
}

}  // namespace

void candidate_walk(Context& context, const CandidateWalkArgs& args) {
  const Walk walk{.drafts = args.drafts,
                  .scores = args.scores.f32(),
                  .scores_stride = args.scores.row_stride,
                  .candidates = args.candidates,
                  .unary = args.unary.f32(),
                  .unary_stride = args.unary.row_stride,
                  .noise = args.noise,
                  .edge = args.edge.f32(),
                  .edge_stride = args.edge.row_stride,
                  .predecessor = args.predecessor,
                  .successor = args.successor,
                  .anchors = args.anchors,
                  .first_row = args.first_row,
                  .k = static_cast<int>(args.unary.dim(1)),
                  .rank = static_cast<int>(args.edge.dim(1))};
  const size_t shared = static_cast<size_t>(walk.rank + walk.k) * sizeof(float);
  launch(context, "candidate_walk", in_chain(static_cast<unsigned>(args.num_sequences), kWarps * 32, shared),
         candidate_walk_kernel, walk);
}

}  // namespace blockdraft::cu
