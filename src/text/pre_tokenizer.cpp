#include "text/pre_tokenizer.h"

#include <string>

namespace blockdraft {
namespace {

using Word = std::function<void(std::string_view)>;

void cut_from(const PreTokenizer& pre, size_t level, std::string_view text, MatchScratch& scratch, const Word& word) {
  if (level == pre.prefix_space_after && pre.add_prefix_space && !text.starts_with(' ')) {
    std::string spaced(1, ' ');
    spaced.append(text);
    return cut_from(pre, level, spaced, scratch, word);
  }
  if (level == pre.splits.size()) return word(text);
  if (level + 1 == pre.splits.size() && !(pre.add_prefix_space && pre.prefix_space_after > level)) {
    return pre.splits[level].split(text, scratch, word);  // the last one: no call in between
  }
  pre.splits[level].split(text, scratch,
                          [&](std::string_view piece) { cut_from(pre, level + 1, piece, scratch, word); });
}

}  // namespace

void PreTokenizer::cut(std::string_view text, MatchScratch& scratch, const Word& word) const {
  if (!text.empty()) cut_from(*this, 0, text, scratch, word);
}

}  // namespace blockdraft
