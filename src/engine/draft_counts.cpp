#include "engine/draft_counts.h"

#include <fmt/format.h>

namespace blockdraft {

std::vector<std::string> draft_warnings(const DraftCounts& counts) {
  std::vector<std::string> warnings;
  if (counts.cycles < kMinCyclesToJudge) return warnings;
  if (counts.masks == counts.verified) {
    warnings.push_back(fmt::format(
        "all {} drafts in {} cycles were the mask id: the drafter's files are damaged, or its config names another id",
        counts.verified, counts.cycles));
  }
  if (counts.accepted == 0) {
    warnings.push_back(
        fmt::format("none of {} drafts in {} cycles was accepted: the drafter was probably trained for another target, "
                    "or its files are damaged",
                    counts.verified, counts.cycles));
  }
  if (counts.accepted == counts.verified) {
    warnings.push_back(
        fmt::format("all {} drafts in {} cycles were accepted: either the text repeats itself, or a cycle could draft "
                    "more",
                    counts.verified, counts.cycles));
  }
  return warnings;
}

}  // namespace blockdraft
