// The ratio test (spec 6.4): drafts drawn from q are kept so that the text has the law p.
#pragma once

#include <cstdint>
#include <span>

#include "ops/sample.h"

namespace blockdraft {

// One draft. Kept if u * q(draft) < p(draft); otherwise the token is drawn from max(p - q, 0), or from p if that is 0
// everywhere.
//   p: [num_choices], sums to 1; turned into the residual weights if the draft is not kept.
//   q: the law that the draft was drawn from, of ids below num_choices; ids that it does not list have q = 0. One that
//   lists nothing means a draft that was not drawn but certain: q(draft) = 1.
//   key: seed, choice and the draft's position; its purpose is not looked at.
struct RatioTest {
  bool kept = false;
  int32_t token = 0;  // the draft, or what comes in its place
};
RatioTest accept_ratio(std::span<float> p, const ProbabilityRow& q, int32_t draft, const NoiseKey& key);

// The token after the last draft, if all were kept: drawn from p.
int32_t draw_bonus(std::span<const float> p, const NoiseKey& key);

// The first id at which the sum of the weights so far reaches u times their total; never one whose weight is 0.
//   u: in (0, 1).  weights: not negative, not all 0.
int32_t draw(std::span<const float> weights, double u);

}  // namespace blockdraft
