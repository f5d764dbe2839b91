#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/argmax.h"
#include "ops/cpu/parallel.h"
#include "ops/cpu/score_filter.h"
#include "ops/sample.h"

namespace blockdraft::cpu {

namespace {

constexpr int64_t kExpCost = 8;  // an exponential, in multiplications

// The largest of the values; NaN if one of them is NaN.
float largest(const float* values, int64_t count) {
  float max = values[0];
  for (int64_t i = 0; i < count; ++i) {
    if (std::isnan(values[i])) return values[i];
    max = std::max(max, values[i]);
  }
  return max;
}

void to_scores(float* row, int64_t count, const RowSampling& sampling) {
  for (int64_t i = 0; i < count; ++i) row[i] /= sampling.temperature;
  if (!std::isfinite(largest(row, count))) return;
  if (sampling.top_k > 0 && sampling.top_k < count) keep_top_k(row, count, sampling.top_k);
  if (sampling.top_p < 1.0f) keep_top_p(row, count, sampling.top_p);
  if (sampling.min_p > 0.0f) keep_min_p(row, count, sampling.min_p);
}

int32_t sample(const float* scores, int64_t count, const NoiseKey& key, const int32_t* target_ids) {
  const double max = static_cast<double>(largest(scores, count));
  if (!std::isfinite(max)) return kNotANumber;
  GumbelNoise noise(key);
  int32_t best = 0;
  double best_value = -std::numeric_limits<double>::infinity();
  // Most scores are too small for any noise to lift them: the number of the largest score says which.
  const int64_t first = std::find(scores, scores + count, static_cast<float>(max)) - scores;
  const double bar = max + noise(target_ids == nullptr ? static_cast<int32_t>(first) : target_ids[first]);
  for (int64_t i = 0; i < count; ++i) {
    const auto score = static_cast<double>(scores[i]);
    if (score + GumbelNoise::kMax < std::max(bar, best_value)) continue;
    const double value = score + noise(target_ids == nullptr ? static_cast<int32_t>(i) : target_ids[i]);
    if (value <= best_value) continue;
    best_value = value;
    best = static_cast<int32_t>(i);
  }
  return best;
}

}  // namespace

void to_scores(Context& context, TensorView logits, int64_t num_choices, const RowSampling* rows) {
  for_each_row(context, logits.dim(0), num_choices * kExpCost, [&](int64_t r) {
    if (rows[r].temperature > 0.0f) to_scores(logits.row(r), num_choices, rows[r]);
  });
}

void sample(Context& context, int32_t* ids, ConstTensorView scores, int64_t num_choices, const RowSampling* rows,
            const int32_t* target_ids) {
  for_each_row(context, scores.dim(0), num_choices * kExpCost, [&](int64_t r) {
    if (rows[r].temperature > 0.0f) ids[r] = sample(scores.row(r), num_choices, rows[r].noise, target_ids);
  });
}

void candidate_noise(Context& context, TensorView noise, const int32_t* candidates, const RowSampling* rows) {
  const int64_t k = noise.dim(1);
  for_each_row(context, noise.dim(0), k * kExpCost, [&](int64_t r) {
    const int32_t* ids = candidates + r * k;
    float* values = noise.row(r);
    std::fill_n(values, k, 0.0f);
    if (rows[r].temperature == 0.0f || ids[0] == kNotANumber) return;
    GumbelNoise gumbel(rows[r].noise);
    for (int64_t c = 0; c < k; ++c) values[c] = rows[r].temperature * static_cast<float>(gumbel(ids[c]));
  });
}

void softmax_row(float* probabilities, const float* scores, int64_t count) {
  const float max = *std::max_element(scores, scores + count);
  double total = 0;
  for (int64_t i = 0; i < count; ++i) {
    probabilities[i] = std::exp(scores[i] - max);
    total += static_cast<double>(probabilities[i]);
  }
  const auto inverse = static_cast<float>(1.0 / total);
  for (int64_t i = 0; i < count; ++i) probabilities[i] *= inverse;
}

}  // namespace blockdraft::cpu
