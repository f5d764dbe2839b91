// The products by their definition, for every card and every type and shape of weight: a warp a feature, float32
// throughout, x not rounded if it is float32. Slow, and right. Codes are aligned to their own size.
#pragma once

#include "ops/cuda/linear_stream.h"
#include "ops/linear.h"
#include "ops/linear_argmax.h"
#include "ops/linear_silu_mul.h"

namespace blockdraft::cu {

// At least one row.
void linear_simple(Context& context, const LinearArgs& args);
void linear_silu_mul_simple(Context& context, const LinearSiluMulArgs& args);

// keys: [rows, kBestParts], for best_of_parts().
void best_features_simple(Context& context, BestKey* keys, const LinearArgmaxArgs& args);

}  // namespace blockdraft::cu
