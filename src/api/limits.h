// The options that size an engine, for those who open one and those who plan one.
#pragma once

#include <cstdint>

#include "blockdraft/result.h"
#include "nn/transformer_config.h"

namespace blockdraft {

// invalid_argument for a value out of range.
Status check_limits(int64_t threads, int64_t max_sequences);

// max_positions of a target: 0 means the smaller of its max_position_embeddings and kDefaultMaxPositions. Otherwise at
// most max_position_embeddings (invalid_argument).
Result<int64_t> resolve_positions(int64_t max_positions, const TransformerConfig& target);

}  // namespace blockdraft
