// From Oniguruma's syntax to PCRE2's. Only what means the same in both, or can be rewritten so that it does, passes.
#include <array>
#include <cctype>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "text/regex.h"
#include "text/utf8.h"

namespace blockdraft {
namespace {

// Oniguruma's \s is White_Space. PCRE2's under UCP has U+180E besides.
constexpr std::string_view kSpace =
    "\\t-\\r\\x{20}\\x{85}\\x{A0}\\x{1680}\\x{2000}-\\x{200A}\\x{2028}\\x{2029}\\x{202F}\\x{205F}\\x{3000}";
constexpr size_t kMaxPatternBytes = 16 << 10;

// ASCII pairs that a single character folds to (U+00DF, U+FB00 to U+FB06): in Oniguruma (?i:ss) matches U+00DF, in
// PCRE2 it does not.
constexpr std::array<std::string_view, 5> kFoldingPairs = {"ss", "ff", "fi", "fl", "st"};

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_hex(char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }
bool is_ascii(char c) { return static_cast<unsigned char>(c) < 0x80; }
bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; }

class Translator {
 public:
  Translator(std::string_view pattern, std::string_view origin) : in_(pattern), origin_(origin) {}

  Result<std::string> translate() {
    if (in_.size() > kMaxPatternBytes) {
      return make_error(Code::unsupported, "{} has {} bytes, expected a pattern of at most {}", origin_, in_.size(),
                        kMaxPatternBytes);
    }
    while (at_ < in_.size()) BLOCKDRAFT_TRY(item());
    if (caseless_.size() > 1) return refuse("a group that is not closed");
    return std::move(out_);
  }

 private:
  Error refuse(std::string_view construct) const {
    return make_error(Code::unsupported, "{} is {} with {} at byte {}, expected constructs that all engines agree on",
                      origin_, in_quotes(in_), construct, at_);
  }

  // What stands here: `before` bytes of ASCII and one character, if the pattern has it.
  std::string_view excerpt(size_t before) const {
    const std::string_view rest = in_.substr(at_);
    return rest.substr(0, before + (before < rest.size() ? utf8_step(rest, before).length : 0));
  }

  bool starts(std::string_view text) const { return in_.substr(at_).starts_with(text); }
  bool caseless() const { return caseless_.back(); }

  void copy(size_t count) {
    out_.append(in_.substr(at_, count));
    at_ += count;
  }

  Status item() {
    const char c = in_[at_];
    if (c == '\\') return escape(false);
    if (c == '[') return character_class();
    if (c == '(') return open_group();
    if (c == ')') return close_group();
    if (c == '*' || c == '+' || c == '?' || c == '{') return quantifier();
    if (c == '^' || c == '$') return refuse(fmt::format("the anchor '{}'", c));
    if (c == '|' || c == '.') {
      last_literal_ = 0;
      copy(1);
      return {};
    }
    return literal();
  }

  Status literal() {
    const char c = in_[at_];
    if (is_control(c)) {  // both engines take it literally
      out_ += fmt::format("\\x{{{:02X}}}", static_cast<unsigned char>(c));
      ++at_;
      return {};
    }
    if (caseless() && !is_ascii(c)) return refuse("a character that is not ASCII in a (?i: group");
    if (caseless()) {
      const std::array<char, 2> pair = {last_literal_, static_cast<char>(std::tolower(static_cast<unsigned char>(c)))};
      for (const std::string_view folding : kFoldingPairs) {
        if (folding == std::string_view(pair.data(), 2)) return refuse(fmt::format("'{}' in a (?i: group", folding));
      }
      last_literal_ = pair[1];
    }
    copy(1);
    return {};
  }

  Status escape(bool in_class) {
    last_literal_ = 0;
    if (at_ + 1 >= in_.size()) return refuse("a '\\' at the end");
    const char c = in_[at_ + 1];
    switch (c) {
      case 'r':
      case 'n':
      case 't':
      case 'f':
      case 'd':
      case 'D':
        copy(2);
        return {};
      case 's':
        return replace(2, in_class ? std::string(kSpace) : fmt::format("[{}]", kSpace));
      case 'S':
        return replace(2, in_class ? "\\S\\x{180E}" : fmt::format("[^{}]", kSpace));
      case 'p':
      case 'P':
        return property();
      case 'u':
        return code_point();
      default:
        break;
    }
    if (!is_ascii(c) || is_control(c) || is_letter(c) || is_digit(c)) {
      return refuse(fmt::format("the escape {}", in_quotes(excerpt(1))));
    }
    copy(2);
    return {};
  }

  Status replace(size_t count, std::string_view text) {
    out_.append(text);
    at_ += count;
    return {};
  }

  // \p{L}: a general category. Longer names are scripts; PCRE2 means Script_Extensions unless told otherwise.
  Status property() {
    const size_t end = in_.find('}', at_);
    if (in_.substr(at_ + 2, 1) != "{" || end == std::string_view::npos) return refuse("\\p without {NAME}");
    if (caseless()) return refuse("a property in a (?i: group");
    const std::string_view name = in_.substr(at_ + 3, end - at_ - 3);
    for (const char c : name) {
      if (!is_letter(c) && c != '_') return refuse(fmt::format("the property {}", in_quotes(name)));
    }
    if (name.empty()) return refuse("a property without a name");
    return replace(end + 1 - at_, fmt::format("\\{}{{{}{}}}", in_[at_ + 1], name.size() > 2 ? "sc:" : "", name));
  }

  Status code_point() {
    const std::string_view digits = in_.substr(at_ + 2, 4);
    if (digits.size() < 4) return refuse("\\u without four digits");
    for (const char c : digits) {
      if (!is_hex(c)) return refuse("\\u without four digits");
    }
    if (caseless()) return refuse("\\u in a (?i: group");
    return replace(6, fmt::format("\\x{{{}}}", digits));
  }

  Status character_class() {
    last_literal_ = 0;
    copy(1);
    if (starts("^")) copy(1);
    if (starts("]")) return refuse("a character class that begins with ']'");
    while (!starts("]")) {
      if (at_ >= in_.size()) return refuse("a character class that is not closed");
      if (starts("[")) return refuse("'[' inside a character class");
      if (starts("&&")) return refuse("'&&' inside a character class");
      BLOCKDRAFT_TRY(class_item());
      last_literal_ = 0;
    }
    copy(1);
    return {};
  }

  Status class_item() {
    if (!starts("\\")) return literal();
    const char kind = at_ + 1 < in_.size() ? in_[at_ + 1] : '\0';
    if (std::string_view("sSdDpP").find(kind) == std::string_view::npos) return escape(true);
    // A '-' beside a set is a literal to one engine and a range to the other.
    if (in_[at_ - 1] == '-' && in_[at_ - 2] != '[' && in_[at_ - 2] != '\\')
      return refuse("a '-' before a set in a class");
    BLOCKDRAFT_TRY(escape(true));
    if (starts("-") && in_.substr(at_, 2) != "-]") return refuse("a '-' after a set in a class");
    return {};
  }

  Status open_group() {
    last_literal_ = 0;
    if (starts("(?i:")) return open(4, true);
    if (starts("(?<=") || starts("(?<!")) return open(4, caseless());
    if (starts("(?:") || starts("(?=") || starts("(?!") || starts("(?>")) return open(3, caseless());
    if (starts("(?") || starts("(*")) return refuse(fmt::format("the group {}", in_quotes(excerpt(2))));
    out_ += "(?:";  // nothing refers to what a group captured
    ++at_;
    caseless_.push_back(caseless());
    return {};
  }

  Status open(size_t count, bool is_caseless) {
    caseless_.push_back(is_caseless);
    copy(count);
    return {};
  }

  Status close_group() {
    last_literal_ = 0;
    if (caseless_.size() == 1) return refuse("a ')' that closes nothing");
    caseless_.pop_back();
    copy(1);
    return {};
  }

  // After {n,m} Oniguruma reads '+' as a second quantifier and after {n} also '?', PCRE2 as possessive and lazy.
  Status quantifier() {
    last_literal_ = 0;
    const bool interval = in_[at_] == '{';
    size_t size = 1;
    bool exact = false;
    if (interval) {
      const std::string_view rest = in_.substr(at_);
      size_t end = 1;
      while (end < rest.size() && is_digit(rest[end])) ++end;
      exact = rest.substr(end, 1) == "}";
      const bool has_minimum = end > 1;
      if (rest.substr(end, 1) == ",") {
        ++end;
        while (end < rest.size() && is_digit(rest[end])) ++end;
      }
      if (!has_minimum || rest.substr(end, 1) != "}") return refuse("a '{' that begins no {n}, {n,} or {n,m}");
      size = end + 1;
    }
    copy(size);
    if (starts("+") && interval) return refuse("'+' after an interval");
    if (starts("?") && exact) return refuse("'?' after {n}");
    if (starts("?") || starts("+")) copy(1);
    if (starts("*") || starts("+") || starts("?") || starts("{")) return refuse("a quantifier of a quantifier");
    return {};
  }

  std::string_view in_;
  std::string_view origin_;
  size_t at_ = 0;
  std::string out_;
  std::vector<bool> caseless_ = {false};  // of the open groups, innermost last
  char last_literal_ = 0;                 // the literal just before, lower case, in a caseless group
};

}  // namespace

Result<std::string> translate_regex(std::string_view pattern, std::string_view origin) {
  return Translator(pattern, origin).translate();
}

}  // namespace blockdraft
