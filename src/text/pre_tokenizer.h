// Cuts text into the words that byte-level BPE merges within.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "text/regex.h"

namespace blockdraft {

// The pattern of ByteLevel with use_regex, as GPT-2 has it: English contractions, then runs of letters, of numbers or
// of anything else with at most one space before, then white space.
inline constexpr std::string_view kByteLevelPattern =
    "'(?:s|t|re|ve|m|ll|d)| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

// Immutable and thread-safe, apart from the scratch memory.
struct PreTokenizer {
  std::vector<Regex> splits;      // each cuts the pieces that the one before left
  bool add_prefix_space = false;  // of ByteLevel: before every piece that the splits before it left
  size_t prefix_space_after = 0;  // how many of the splits come before ByteLevel

  // Calls `word` for each word of `text` (valid UTF-8), in order. The words are views of `text`, or of memory that
  // lives as long as the call of `word` when a space was put before.
  void cut(std::string_view text, MatchScratch& scratch, const std::function<void(std::string_view word)>& word) const;
};

}  // namespace blockdraft
