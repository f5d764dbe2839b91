// Tokens that are found in the text itself, before the model sees it: "<|im_start|>" and its like.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "blockdraft/result.h"
#include "text/regex.h"

namespace blockdraft {

// The keys of an entry of added_tokens.
struct AddedToken {
  int32_t id = 0;
  std::string content;       // not empty
  bool single_word = false;  // only where no word character stands next to it
  bool lstrip = false;       // takes the white space before it
  bool rstrip = false;       // takes the white space after it
  bool normalized = false;   // looked for in normalized text; otherwise in the text as given
  bool special = false;      // left out by decode
};

// Finds the leftmost, then longest, of a set of strings.
class StringFinder {
 public:
  void add(std::string_view text, size_t token);  // not empty, not added before
  void finish();                                  // after the last add
  bool empty() const { return entries_.empty(); }

  struct Match {
    size_t begin = 0;
    size_t end = 0;
    size_t token = 0;
  };
  std::optional<Match> find(std::string_view text, size_t from) const;

 private:
  struct Entry {
    std::string text;
    size_t token = 0;
  };
  std::vector<Entry> entries_;  // sorted by text
  std::vector<bool> is_first_ = std::vector<bool>(256, false);
};

// Filled while loading, then immutable and thread-safe.
class AddedTokens {
 public:
  static constexpr size_t kMaxContentBytes = 1024;

  // `pattern`: what is looked for, the content as its kind of text has it. Errors (without file name): an id, content
  // or pattern given twice.
  Status add(const AddedToken& token, std::string_view pattern);
  // After the last add. Fails only if the word-character pattern does not compile.
  Status finish();

  // What split finds: an id, or a piece of text between two of them (id -1, text not empty).
  struct Part {
    int32_t id = -1;
    std::string_view text;
  };
  // Calls `part` for the parts of valid UTF-8, in order. With parse_special false special tokens count as text.
  void split(std::string_view text, bool normalized, bool parse_special,
             const std::function<void(const Part&)>& part) const;

  bool is_special(int32_t id) const;
  int32_t find(std::string_view content) const;  // -1: none

 private:
  bool stands_alone(std::string_view text, const StringFinder::Match& match) const;

  std::vector<AddedToken> tokens_;
  StringFinder finders_[2];                              // [normalized]; numbers are indices into tokens_
  std::unordered_map<std::string, int32_t> ids_;         // by content
  std::unordered_map<int32_t, bool> special_;            // by id
  std::unordered_map<std::string, size_t> patterns_[2];  // [normalized]
  std::optional<Regex> word_character_;                  // set if a token has single_word
};

}  // namespace blockdraft
