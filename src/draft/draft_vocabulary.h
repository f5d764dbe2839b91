// Which target id a draft id means (spec 1.10).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "blockdraft/result.h"
#include "checkpoint/safetensors.h"

namespace blockdraft {

// Reads d2t [draft_vocab_size] as offsets (target id = i + d2t[i]) or absolute ids, whichever reading t2d
// [vocab_size] (may be null) supports; without t2d by the order of spec 1.10. The result is strictly increasing and
// below vocab_size, or the tensor is refused with `origin` named. Without `read_values` only types and shapes are
// checked, and the result is empty.
Result<std::vector<int32_t>> read_draft_vocabulary(const StoredTensor& d2t, const StoredTensor* t2d,
                                                   int64_t draft_vocab_size, int64_t vocab_size,
                                                   std::string_view origin, bool read_values = true);

}  // namespace blockdraft
