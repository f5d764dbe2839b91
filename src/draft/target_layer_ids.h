// The target layers whose outputs a drafter reads (spec 1.3).
#pragma once

#include "blockdraft/result.h"
#include "draft/draft_keys.h"
#include "draft/drafter_config.h"
#include "draft/drafter_kind.h"

namespace blockdraft {

// Fills target_layer_ids, target_layer_ids_computed and num_target_layers of `drafter`, whose transformer is read.
// z-lab numbering; -1, the embeddings, for DSpark only; strictly increasing in DeepSpec's files. Where a config has no
// list, the one that its training code assumes, with a warning; DeepSpec and DFlash2 assume none (not_found).
Status read_target_layer_ids(const DraftKeys& keys, const DrafterKind& kind, DrafterConfig& drafter);

}  // namespace blockdraft
