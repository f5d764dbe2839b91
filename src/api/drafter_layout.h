// The public layout of a drafter's block as the config's reader takes it.
#pragma once

#include <optional>

#include "blockdraft/drafter_files.h"
#include "draft/drafter_config.h"

namespace blockdraft {

inline std::optional<BlockLayout> layout_override(DrafterLayout layout) {
  if (layout == DrafterLayout::as_stated) return std::nullopt;
  return layout == DrafterLayout::in_place ? BlockLayout::in_place : BlockLayout::shifted;
}

}  // namespace blockdraft
