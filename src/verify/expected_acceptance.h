// How likely a draft is to be accepted, by what its law q and the target's law p allow. For reports: nothing of the
// text depends on it.
#pragma once

#include <span>

#include "ops/sample.h"

namespace blockdraft {

// Ratio acceptance keeps a draft with probability sum min(p, q) = 1 - (total variation distance): no rule that gives
// tokens the law p can keep more drafts of law q.
//   p: [num_choices], sums to 1.  q: as in verify/accept_ratio.h, not empty.
double expected_ratio_acceptance(std::span<const float> p, const ProbabilityRow& q);

// Coupled acceptance keeps a draft where argmax(log p + gumbel) = argmax(log q + gumbel) with one noise. For id x that
// is: E_y >= E_x * max(p_y / p_x, q_y / q_x) for every other y, with independent exponential numbers E. So the
// probability is the sum over x of 1 / (sum over y of max(p_y / p_x, q_y / q_x)); with distance d between
// (1 - d) / (1 + d) and 1 - d. Both functions allocate.
double expected_coupled_acceptance(std::span<const float> p, const ProbabilityRow& q);

}  // namespace blockdraft
