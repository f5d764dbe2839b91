// The filters of ops/sample.h on one row of scores. No memory is needed beside the row.
#pragma once

#include <cstdint>

namespace blockdraft::cpu {

// Each sets the scores of the ids it drops to -infinity. No score is NaN or +infinity, one at least is finite.
void keep_top_k(float* scores, int64_t count, int64_t top_k);  // 1 <= top_k < count
void keep_top_p(float* scores, int64_t count, float top_p);    // 0 < top_p < 1
void keep_min_p(float* scores, int64_t count, float min_p);    // 0 < min_p <= 1

}  // namespace blockdraft::cpu
