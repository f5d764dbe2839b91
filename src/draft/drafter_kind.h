// Which kind of drafter a config describes. Plain DFlash is read; every other published kind and vendor variant is
// refused by its name (spec 1.8, 2.2, 2.3, appendix A).
#pragma once

#include <string>

#include "blockdraft/result.h"
#include "draft/draft_keys.h"

namespace blockdraft {

// The first of `architectures` of a plain DFlash drafter. unsupported for: speculators files, a projector type other
// than dflash (looked at before the architecture: exports of Domino carry DFlash's), other architectures, keys of other
// kinds and variants in use, whatever the architecture says, and a model_type other than qwen3.
Result<std::string> read_plain_dflash_architecture(DraftKeys& keys);

}  // namespace blockdraft
