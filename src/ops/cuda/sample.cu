#include <algorithm>

#include "ops/argmax.h"
#include "ops/cuda/launch.h"
#include "ops/cuda/overlap.cuh"
#include "ops/cuda/score_filter.cuh"
#include "ops/sample.h"

namespace blockdraft::cu {

namespace {

constexpr int kThreads = 256;
constexpr int64_t kMostParts = 64;          // of a row, a block each
constexpr int64_t kMinPart = 4 * kThreads;  // choices

__global__ void divide_kernel(float* scores, int64_t stride, int64_t count, const RowSampling* rows) {
  begin_in_chain();
  const float temperature = rows[blockIdx.y].temperature;
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (temperature > 0.0f && i < count) scores[blockIdx.y * stride + i] /= temperature;
}

// A block a row, which ends at once where no filter is on.
__global__ void filter_kernel(float* scores, int64_t stride, int64_t count, const RowSampling* rows) {
  begin_in_chain();
  const RowSampling& sampling = rows[blockIdx.x];
  const bool by_count = sampling.top_k > 0 && sampling.top_k < count;
  const bool by_sum = sampling.top_p < 1.0f;
  const bool by_weight = sampling.min_p > 0.0f;
  if (sampling.temperature <= 0.0f || !(by_count || by_sum || by_weight)) return;
  float* row = scores + blockIdx.x * stride;
  const float max = largest_of_row(row, count);
  if (!isfinite(max)) return;
  if (by_count) keep_top_k(row, count, sampling.top_k);
  if (by_sum) keep_top_p(row, count, sampling.top_p, max);
  if (by_weight) keep_min_p(row, count, sampling.min_p, max);
}

// The best choice so far. A score that may not be makes `index` kNotANumber and the value infinite, so that it wins.
struct Draw {
  double value;
  int32_t index;
};

__device__ Draw better(const Draw& a, const Draw& b) {
  return a.value > b.value || (a.value == b.value && a.index < b.index) ? a : b;
}

__device__ Draw best_of_warp(Draw draw) {
  for (int distance = 16; distance > 0; distance /= 2) {
    draw = better(draw, {__shfl_xor_sync(~0u, draw.value, distance), __shfl_xor_sync(~0u, draw.index, distance)});
  }
  return draw;
}

__device__ Draw no_draw() { return {-HUGE_VAL, INT32_MAX}; }

__device__ void offer(Draw& best, float score, int64_t i, GumbelNoise& noise, const int32_t* target_ids) {
  if (!(score < HUGE_VALF)) {  // NaN, too
    best = {HUGE_VAL, kNotANumber};
    return;
  }
  if (static_cast<double>(score) + GumbelNoise::kMax < best.value) return;
  const auto index = static_cast<int32_t>(i);
  const double value = static_cast<double>(score) + noise(target_ids == nullptr ? index : target_ids[i]);
  if (value > best.value) best = {value, index};
}

// Four neighbours at a time, whose numbers come from the same random words.
__global__ void draw_kernel(Draw* parts, const float* scores, int64_t stride, int64_t count, const RowSampling* rows,
                            const int32_t* target_ids) {
  begin_in_chain();
  __shared__ Draw warps[kThreads / 32];
  const float* row = scores + blockIdx.y * stride;
  if (rows[blockIdx.y].temperature <= 0.0f) return;
  GumbelNoise noise(rows[blockIdx.y].noise);
  Draw best = no_draw();
  const int64_t threads = int64_t{gridDim.x} * kThreads;
  for (int64_t first = 4 * (int64_t{blockIdx.x} * kThreads + threadIdx.x); first < count; first += 4 * threads) {
    for (int64_t i = first; i < first + 4 && i < count; ++i) offer(best, row[i], i, noise, target_ids);
  }
  best = best_of_warp(best);
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = best;
  __syncthreads();
  if (threadIdx.x >= 32) return;
  best = best_of_warp(threadIdx.x < kThreads / 32 ? warps[threadIdx.x] : no_draw());
  if (threadIdx.x == 0) parts[blockIdx.y * gridDim.x + blockIdx.x] = best;
}

__global__ void choose_kernel(int32_t* ids, const Draw* parts, int num_parts, const RowSampling* rows) {
  begin_in_chain();
  if (rows[blockIdx.x].temperature <= 0.0f) return;
  Draw best = no_draw();
  for (int i = static_cast<int>(threadIdx.x); i < num_parts; i += 32) {
    best = better(best, parts[int64_t{blockIdx.x} * num_parts + i]);
  }
  best = best_of_warp(best);
  if (threadIdx.x == 0) ids[blockIdx.x] = best.value == -HUGE_VAL ? kNotANumber : best.index;
}

__global__ void candidate_noise_kernel(float* noise, int64_t stride, const int32_t* candidates, int k,
                                       const RowSampling* rows) {
  begin_in_chain();
  const int64_t row = blockIdx.x;
  const RowSampling& sampling = rows[row];
  const int32_t* ids = candidates + row * k;
  for (int c = static_cast<int>(threadIdx.x); c < k; c += static_cast<int>(blockDim.x)) {
    const bool is_drawn = sampling.temperature != 0.0f && ids[0] != kNotANumber;
    noise[row * stride + c] =
        is_drawn ? sampling.temperature * static_cast<float>(GumbelNoise(sampling.noise)(ids[c])) : 0.0f;
  }
}

}  // namespace

void to_scores(Context& context, TensorView logits, int64_t num_choices, const RowSampling* rows) {
  const auto num_rows = static_cast<unsigned>(logits.dim(0));
  launch(context, "to_scores", in_chain({blocks_for(num_choices, kThreads), num_rows}, kThreads), divide_kernel,
         logits.f32(), logits.row_stride, num_choices, rows);
  launch(context, "to_scores", in_chain(num_rows, kFilterThreads), filter_kernel, logits.f32(), logits.row_stride,
         num_choices, rows);
}

void sample(Context& context, int32_t* ids, ConstTensorView scores, int64_t num_choices, const RowSampling* rows,
            const int32_t* target_ids) {
  const int64_t num_rows = scores.dim(0);
  if (num_rows == 0) return;
  const ArenaScope scope(*context.arena);
  const int64_t num_parts = std::clamp<int64_t>(num_choices / kMinPart, 1, kMostParts);
  static_assert(sizeof(Draw) == 16);
  auto* parts = reinterpret_cast<Draw*>(context.arena->take_i32(4 * num_rows * num_parts));
  launch(context, "sample", in_chain({static_cast<unsigned>(num_parts), static_cast<unsigned>(num_rows)}, kThreads),
         draw_kernel, parts, scores.f32(), scores.row_stride, num_choices, rows, target_ids);
  launch(context, "sample", in_chain(static_cast<unsigned>(num_rows), 32), choose_kernel, ids,
         static_cast<const Draw*>(parts), static_cast<int>(num_parts), rows);
}

size_t sample_scratch_bytes(int64_t rows) { return arena_bytes_f32(4 * rows * kMostParts); }

void candidate_noise(Context& context, TensorView noise, const int32_t* candidates, const RowSampling* rows) {
  launch(context, "candidate_noise", in_chain(static_cast<unsigned>(noise.dim(0)), 64), candidate_noise_kernel,
         noise.f32(), noise.row_stride, candidates, static_cast<int>(noise.dim(1)), rows);
}

}  // namespace blockdraft::cu
