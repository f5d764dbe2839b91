// Keys that change what a drafter computes and that its family does not have: never passed over (spec 2.2, 2.8).
#pragma once

#include "blockdraft/result.h"
#include "draft/draft_keys.h"
#include "draft/drafter_kind.h"

namespace blockdraft {

// unsupported, by key, value and the kind of drafter that the key belongs to, unless the value changes nothing.
Status refuse_foreign_keys(const DraftKeys& keys, const DrafterKind& kind);

}  // namespace blockdraft
