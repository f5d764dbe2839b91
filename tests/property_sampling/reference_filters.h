// The filters of ops/sample.h by their definition.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include "ops/sample.h"

namespace blockdraft::test {

// Which ids the filters keep, ascending: by sorting, in double. False if an id lies so near a boundary that rounding
// may decide.
inline bool keep_by_sorting(const std::vector<float>& logits, const RowSampling& sampling, std::vector<int32_t>& kept) {
  std::vector<float> scores = logits;
  for (float& score : scores) score /= sampling.temperature;
  std::vector<int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return scores[static_cast<size_t>(a)] > scores[static_cast<size_t>(b)];
  });
  if (sampling.top_k > 0) order.resize(std::min(order.size(), static_cast<size_t>(sampling.top_k)));
  const auto weight = [&](int32_t id) {
    return std::exp(static_cast<double>(scores[static_cast<size_t>(id)]) -
                    static_cast<double>(scores[static_cast<size_t>(order[0])]));
  };
  double total = 0;
  for (const int32_t id : order) total += weight(id);
  double before = 0;
  bool clear = true;
  kept.clear();
  for (const int32_t id : order) {
    const double p = weight(id);
    const bool in_top_p = sampling.top_p >= 1.0f || before / total < static_cast<double>(sampling.top_p);
    clear = clear && (before == 0 || sampling.top_p >= 1.0f ||
                      std::abs(before / total - static_cast<double>(sampling.top_p)) > 1e-5);
    clear = clear && (sampling.min_p == 0.0f || std::abs(p - static_cast<double>(sampling.min_p)) > 1e-5);
    before += p;
    if (in_top_p && p >= static_cast<double>(sampling.min_p)) kept.push_back(id);
  }
  std::ranges::sort(kept);
  return clear;
}

}  // namespace blockdraft::test
