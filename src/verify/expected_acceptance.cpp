#include "verify/expected_acceptance.h"

#include <algorithm>
#include <vector>

#include "base/check.h"

namespace blockdraft {
namespace {

struct Both {
  double p = 0;
  double q = 0;
};

// The ids to which q gives probability.
std::vector<Both> listed(std::span<const float> p, const ProbabilityRow& q) {
  std::vector<Both> rows;
  for (int64_t i = 0; i < q.count; ++i) {
    const auto id = q.ids == nullptr ? static_cast<size_t>(i) : static_cast<size_t>(q.ids[i]);
    CHECK(id < p.size());
    if (q.values[i] > 0.0f) rows.push_back({static_cast<double>(p[id]), static_cast<double>(q.values[i])});
  }
  return rows;
}

}  // namespace

double expected_ratio_acceptance(std::span<const float> p, const ProbabilityRow& q) {
  double sum = 0;
  for (const Both& id : listed(p, q)) sum += std::min(id.p, id.q);
  return std::min(sum, 1.0);
}

// By rising p / q: the maximum is q_y / q_x for the ids y before x, p_y / p_x for those behind it.
double expected_coupled_acceptance(std::span<const float> p, const ProbabilityRow& q) {
  std::vector<Both> rows = listed(p, q);
  std::ranges::sort(rows, [](const Both& a, const Both& b) { return a.p * b.q < b.p * a.q; });
  double p_behind = 0;  // of x itself too
  for (const float value : p) p_behind += static_cast<double>(value);
  double q_before = 0;
  double sum = 0;
  for (const Both& x : rows) {
    if (x.p > 0) sum += 1 / (p_behind / x.p + q_before / x.q);
    p_behind -= x.p;
    q_before += x.q;
  }
  return std::min(sum, 1.0);
}

}  // namespace blockdraft
