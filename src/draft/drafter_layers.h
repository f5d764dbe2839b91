// Type, causality and window of each drafter layer (spec 2.3, 2.4).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "blockdraft/result.h"
#include "draft/draft_keys.h"
#include "draft/drafter_config.h"
#include "draft/drafter_kind.h"

namespace blockdraft {

// [num_hidden_layers]. Refused: a layer type other than the two, a list of another length, a sliding layer without a
// window or in a DeepSpec file, is_causal and causal where they are not looked for. Keys that contradict each other
// where the spec has an order add a line to `warnings`.
Result<std::vector<DrafterLayerConfig>> read_drafter_layers(const DraftKeys& keys, const DrafterKind& kind,
                                                            int64_t num_hidden_layers,
                                                            std::vector<std::string>& warnings);

}  // namespace blockdraft
