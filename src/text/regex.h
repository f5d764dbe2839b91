// The regular expressions of tokenizer files. They are written for Oniguruma (Ruby syntax), and run here by PCRE2.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "blockdraft/result.h"

namespace blockdraft {

// The PCRE2 pattern (UTF and UCP) that matches what Oniguruma matches for `pattern`. Constructs in which the two
// differ are rewritten (\s, script properties, \uXXXX) or refused: unsupported, with `origin` and the construct.
Result<std::string> translate_regex(std::string_view pattern, std::string_view origin);

// Memory for the matches of one thread.
class MatchScratch;

// A compiled pattern. Immutable; shared by copies and by threads, each with a MatchScratch of its own.
class Regex {
 public:
  // `origin` begins the messages: file and key.
  static Result<Regex> compile(std::string_view pattern, std::string_view origin);

  // One word character as \w has it: alphabetic, mark, decimal digit, connector, or join control (Unicode TS 18, annex
  // C).
  static Result<Regex> word_character();

  // Cuts `text` (valid UTF-8) at every match, from left to right, and calls `piece` for matches and for what is
  // between them; never with an empty piece. A match that takes more than kMatchLimit steps is given up: the rest of
  // the text is one piece then, which depends on pattern and text only, and a warning is logged.
  void split(std::string_view text, MatchScratch& scratch,
             const std::function<void(std::string_view piece)>& piece) const;

  // Whether `text` (valid UTF-8) has a match that starts at byte 0.
  bool matches_at_start(std::string_view text, MatchScratch& scratch) const;

  static constexpr unsigned kMatchLimit = 2'000'000;  // backtracking steps from one start

 private:
  struct Compiled;
  static Result<Regex> compile_translated(std::string_view pattern, std::string_view origin);
  explicit Regex(std::shared_ptr<const Compiled> compiled) : compiled_(std::move(compiled)) {}
  std::shared_ptr<const Compiled> compiled_;
};

class MatchScratch {
 public:
  MatchScratch();
  ~MatchScratch();
  MatchScratch(const MatchScratch&) = delete;
  MatchScratch& operator=(const MatchScratch&) = delete;

 private:
  friend class Regex;
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace blockdraft
