#include "verify/accept_ratio.h"

#include <algorithm>

#include "base/check.h"

namespace blockdraft {
namespace {

double uniform(NoiseKey key, NoisePurpose purpose) {
  key.purpose = purpose;
  return uniform_noise(key);
}

int32_t id_at(const ProbabilityRow& q, int64_t index) {
  return q.ids == nullptr ? static_cast<int32_t>(index) : q.ids[index];
}

float probability_of(const ProbabilityRow& q, int32_t id) {
  if (q.ids == nullptr) return q.values[id];
  const int32_t* place = std::find(q.ids, q.ids + q.count, id);
  CHECK(place != q.ids + q.count);
  return q.values[place - q.ids];
}

// Whether p exceeds q anywhere.
bool has_residual(std::span<const float> p, const ProbabilityRow& q) {
  auto unlisted = std::ranges::count_if(p, [](float value) { return value > 0.0f; });
  for (int64_t i = 0; i < q.count; ++i) {
    const float value = p[static_cast<size_t>(id_at(q, i))];
    if (value > q.values[i]) return true;
    if (value > 0.0f) --unlisted;
  }
  return unlisted > 0;
}

void subtract(std::span<float> p, const ProbabilityRow& q) {
  for (int64_t i = 0; i < q.count; ++i) {
    float& value = p[static_cast<size_t>(id_at(q, i))];
    value = std::max(value - q.values[i], 0.0f);
  }
}

}  // namespace

RatioTest accept_ratio(std::span<float> p, const ProbabilityRow& q, int32_t draft, const NoiseKey& key) {
  constexpr float kOne = 1.0f;
  const ProbabilityRow certain{&draft, &kOne, 1};
  const ProbabilityRow& law = q.count == 0 ? certain : q;
  const double u = uniform(key, NoisePurpose::accept);
  if (u * static_cast<double>(probability_of(law, draft)) < static_cast<double>(p[static_cast<size_t>(draft)])) {
    return {.kept = true, .token = draft};
  }
  if (has_residual(p, law)) subtract(p, law);
  return {.kept = false, .token = draw(p, uniform(key, NoisePurpose::residual))};
}

int32_t draw_bonus(std::span<const float> p, const NoiseKey& key) { return draw(p, uniform(key, NoisePurpose::bonus)); }

int32_t draw(std::span<const float> weights, double u) {
  double total = 0;
  for (const float weight : weights) total += static_cast<double>(weight);
  CHECK(total > 0);
  const double goal = u * total;
  double sum = 0;
  // The sums are the same as in the total, so the last positive weight reaches it, and with it the goal.
  for (size_t i = 0; i < weights.size(); ++i) {
    sum += static_cast<double>(weights[i]);
    if (weights[i] > 0.0f && sum >= goal) return static_cast<int32_t>(i);
  }
  CHECK(false);
  return 0;
}

}  // namespace blockdraft
