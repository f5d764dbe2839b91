#include "text/added_tokens.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "text/utf8.h"

namespace blockdraft {
namespace {

size_t skip_white_space(std::string_view text, size_t at) {
  while (at < text.size()) {
    const Utf8Step step = utf8_step(text, at);
    if (!is_white_space(step.code_point)) break;
    at += step.length;
  }
  return at;
}

size_t skip_white_space_back(std::string_view text, size_t end, size_t limit) {
  while (end > limit) {
    const Utf8Step step = utf8_step_back(text, end);
    if (!is_white_space(step.code_point)) break;
    end -= step.length;
  }
  return end;
}

}  // namespace

void StringFinder::add(std::string_view text, size_t token) {
  entries_.push_back({std::string(text), token});
  is_first_[static_cast<unsigned char>(text[0])] = true;
}

void StringFinder::finish() {
  std::sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) { return a.text < b.text; });
}

// The entries that begin with the same bytes are neighbours: each byte of the text narrows the range.
std::optional<StringFinder::Match> StringFinder::find(std::string_view text, size_t from) const {
  const auto byte_less = [](char a, char b) { return static_cast<unsigned char>(a) < static_cast<unsigned char>(b); };
  for (size_t begin = from; begin < text.size(); ++begin) {
    if (!is_first_[static_cast<unsigned char>(text[begin])]) continue;
    std::optional<Match> longest;
    auto low = entries_.begin();
    auto high = entries_.end();
    for (size_t depth = 0; low != high && begin + depth < text.size(); ++depth) {
      const char byte = text[begin + depth];
      low = std::partition_point(low, high, [&](const Entry& entry) {
        return entry.text.size() <= depth || byte_less(entry.text[depth], byte);
      });
      high = std::partition_point(low, high, [&](const Entry& entry) { return !byte_less(byte, entry.text[depth]); });
      if (low != high && low->text.size() == depth + 1) longest = Match{begin, begin + depth + 1, low->token};
    }
    if (longest) return longest;
  }
  return std::nullopt;
}

Status AddedTokens::add(const AddedToken& token, std::string_view pattern) {
  if (special_.contains(token.id)) {
    return make_error(Code::corrupt_file, "gives id {} to {} and to another token, expected unique ids", token.id,
                      in_quotes(token.content));
  }
  const size_t kind = token.normalized ? 1 : 0;
  if (!ids_.emplace(token.content, token.id).second || !patterns_[kind].emplace(pattern, tokens_.size()).second) {
    return make_error(Code::corrupt_file, "has content {} twice, expected unique tokens", in_quotes(token.content));
  }
  special_[token.id] = token.special;
  finders_[kind].add(pattern, tokens_.size());
  tokens_.push_back(token);
  return {};
}

Status AddedTokens::finish() {
  for (StringFinder& finder : finders_) finder.finish();
  const auto has_single_word = [](const AddedToken& token) { return token.single_word; };
  if (std::any_of(tokens_.begin(), tokens_.end(), has_single_word)) {
    BLOCKDRAFT_ASSIGN(word_character_, Regex::word_character());
  }
  return {};
}

bool AddedTokens::stands_alone(std::string_view text, const StringFinder::Match& match) const {
  MatchScratch scratch;
  const auto is_word = [&](std::string_view character) {
    return word_character_->matches_at_start(character, scratch);
  };
  if (match.end < text.size() && is_word(text.substr(match.end))) return false;
  return match.begin == 0 || !is_word(text.substr(match.begin - utf8_step_back(text, match.begin).length));
}

void AddedTokens::split(std::string_view text, bool normalized, bool parse_special,
                        const std::function<void(const Part&)>& part) const {
  const StringFinder& finder = finders_[normalized ? 1 : 0];
  const auto text_part = [&](size_t begin, size_t end) {
    if (begin < end) part({-1, text.substr(begin, end - begin)});
  };
  size_t done = 0;
  size_t from = 0;
  while (!finder.empty()) {
    const std::optional<StringFinder::Match> match = finder.find(text, from);
    if (!match) break;
    from = match->end;
    const AddedToken& token = tokens_[match->token];
    if (token.special && !parse_special) continue;
    if (token.single_word && !stands_alone(text, *match)) continue;
    const size_t begin = token.lstrip ? skip_white_space_back(text, match->begin, done) : match->begin;
    const size_t end = token.rstrip ? skip_white_space(text, match->end) : match->end;
    text_part(done, begin);
    part({token.id, {}});
    // Stripped white space may be where another token begins; the search does not know, as in the original.
    done = end;
  }
  text_part(done, text.size());
}

bool AddedTokens::is_special(int32_t id) const {
  const auto found = special_.find(id);
  return found != special_.end() && found->second;
}

int32_t AddedTokens::find(std::string_view content) const {
  const auto found = ids_.find(std::string(content));
  return found == ids_.end() ? -1 : found->second;
}

}  // namespace blockdraft
