#include "api/limits.h"

#include <algorithm>

#include "base/check_option.h"
#include "blockdraft/engine.h"

namespace blockdraft {

Status check_limits(int64_t threads, int64_t max_sequences) {
  BLOCKDRAFT_TRY(check_option("threads", threads, 0, kMaxThreads));
  return check_option("max_sequences", max_sequences, 1, kMaxSequences);
}

Result<int64_t> resolve_positions(int64_t max_positions, const TransformerConfig& target) {
  const int64_t most = target.max_position_embeddings;
  if (max_positions == 0) return std::min(most, kDefaultMaxPositions);
  BLOCKDRAFT_TRY(check_option("max_positions", max_positions, 1, most));
  return max_positions;
}

}  // namespace blockdraft
