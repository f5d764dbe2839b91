// Acceptance by given chances in place of the comparison with the target: for timing models whose weights are random,
// where real acceptance says nothing. The text is then not the target's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace blockdraft {

// Draft i of a block is kept with chance i of the list if those before it are; drafts behind the list never are. The
// numbers are a function of text and position alone, so runs of different widths meet the same luck.
class AcceptPattern {
 public:
  explicit AcceptPattern(std::vector<float> chances) : chances_(std::move(chances)) {}  // each 0 to 1

  // Leading drafts of `width` that are kept.
  //   text: which one of a call.  position: of the first draft.
  int32_t accepted(size_t text, int32_t position, int32_t width) const;

 private:
  std::vector<float> chances_;
};

}  // namespace blockdraft
