// Which kind of drafter a config describes, who wrote it, and the layout of its block. Every published kind that is not
// implemented is refused by its name (spec 1.8, 2.2, 2.3, 2.6, appendix A).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "blockdraft/result.h"
#include "draft/draft_keys.h"
#include "draft/drafter_config.h"

namespace blockdraft {

// Whose rules hold where the training codes differ: for defaults, and for what a config must have.
enum class DrafterFormat {
  plain,        // z-lab's and SpecForge's
  deepspec,     // everything at the top level of a copy of the target's config
  speculators,  // transformer keys in transformer_layer_config
  muse,         // Muse Glimmer assistant: a plain DFlash drafter whose config leaves out what all of its files share
};

struct DrafterKind {
  std::string architecture;  // the first of `architectures`
  DrafterFamily family = DrafterFamily::dflash;
  DrafterFormat format = DrafterFormat::plain;
};

// unsupported for: a projector type that is not known or not that of the architecture (looked at first: exports of
// Domino carry DFlash's architecture), architectures of other drafters, keys in use that belong to other kinds,
// whatever the architecture says, and a model_type other than qwen3.
Result<DrafterKind> read_drafter_kind(const DraftKeys& keys);

// Spec 1.8. An override that contradicts what the config says is followed, with a warning that names both; so is the
// assumption for files in speculators format that do not say it.
Result<BlockLayout> read_block_layout(const DraftKeys& keys, const DrafterKind& kind,
                                      std::optional<BlockLayout> layout_override, std::vector<std::string>& warnings);

}  // namespace blockdraft
