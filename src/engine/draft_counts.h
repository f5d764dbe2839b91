// What became of the drafts of an engine, and what that says of the drafter.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace blockdraft {

struct DraftCounts {
  int64_t cycles = 0;    // of one sequence, with one draft at least
  int64_t verified = 0;  // drafts in them
  int64_t accepted = 0;
  int64_t masks = 0;  // verified drafts that were the drafter's mask id
};

// Below so many cycles nothing is concluded: of a first draft that is right three times in ten, as a poor drafter's is,
// one in 100,000 such series is wrong from end to end.
inline constexpr int64_t kMinCyclesToJudge = 32;

// A sentence for each thing that no drafter in order does: mask ids only, never accepted, always accepted.
std::vector<std::string> draft_warnings(const DraftCounts& counts);

}  // namespace blockdraft
