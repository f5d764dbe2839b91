#include "text/regex.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "text/pre_tokenizer.h"

namespace blockdraft {
namespace {

using testing::ElementsAre;

std::vector<std::string> split(std::string_view pattern, std::string_view text) {
  const auto regex = Regex::compile(pattern, "pattern");
  if (!regex) return {"refused: " + regex.error().message};
  MatchScratch scratch;
  std::vector<std::string> pieces;
  regex->split(text, scratch, [&](std::string_view piece) { pieces.emplace_back(piece); });
  return pieces;
}

TEST(Regex, SplitsIntoMatchesAndWhatIsBetween) {
  EXPECT_THAT(split("b+", "abbc"), ElementsAre("a", "bb", "c"));
  EXPECT_THAT(split("b+", "bb"), ElementsAre("bb"));
  EXPECT_THAT(split("b+", "ac"), ElementsAre("ac"));
  EXPECT_THAT(split("b+", ""), ElementsAre());
}

TEST(Regex, EmptyMatchesCutButGiveNoPieces) {
  EXPECT_THAT(split("x*", "ab"), ElementsAre("a", "b"));
  EXPECT_THAT(split("x*", "axxb"), ElementsAre("a", "xx", "b"));
  EXPECT_THAT(split("(?=b)", "abab"), ElementsAre("a", "ba", "b"));
  EXPECT_THAT(split("x*", "\u4E2D\u6587"), ElementsAre("\u4E2D", "\u6587"));
}

TEST(Regex, WhiteSpaceIsUnicodes) {
  // U+180E was a space once; PCRE2 still counts it as one.
  EXPECT_THAT(split("\\s", "a\u0085b\u00A0c\u3000d\u180Ee\u200Bf"),
              ElementsAre("a", "\u0085", "b", "\u00A0", "c", "\u3000", "d\u180Ee\u200Bf"));
  EXPECT_THAT(split("[\\s]", "a\u2028b\u180Ec"), ElementsAre("a", "\u2028", "b\u180Ec"));
  EXPECT_THAT(split("\\S+", " \u180Ea "), ElementsAre(" ", "\u180Ea", " "));
  EXPECT_THAT(split("[\\S]+", " \u180Ea "), ElementsAre(" ", "\u180Ea", " "));
  EXPECT_THAT(split("[^\\s]+", " \u180Ea\u3000"), ElementsAre(" ", "\u180Ea", "\u3000"));
}

TEST(Regex, CaselessGroupsFoldSingleCharacters) {
  EXPECT_THAT(split("(?i:'s|k)", "'S'\u017F\u212A"), ElementsAre("'S", "'\u017F", "\u212A"));
  EXPECT_THAT(split("(?i:a)b", "AbAB"), ElementsAre("Ab", "AB"));
}

TEST(Regex, ScriptsAreScriptsNotExtensions) {
  // U+30FC belongs to Common; its Script_Extensions name Katakana.
  EXPECT_THAT(split("\\p{Katakana}+", "\u30AB\u30FC"), ElementsAre("\u30AB", "\u30FC"));
  EXPECT_THAT(split("\\p{Han}+", "a\u4E2D\u6587b"), ElementsAre("a", "\u4E2D\u6587", "b"));
}

TEST(Regex, NumbersAreOfAllKinds) {
  EXPECT_THAT(split("\\p{N}{1,3}", "12345"), ElementsAre("123", "45"));
  EXPECT_THAT(split("\\p{N}", "\u0663\u2167\u00BD"), ElementsAre("\u0663", "\u2167", "\u00BD"));
  EXPECT_THAT(split("\\d+", "1\u0663\u2167"), ElementsAre("1\u0663", "\u2167"));
}

TEST(Regex, SupportsWhatTheEnginesAgreeOn) {
  EXPECT_THAT(split(".", "a\nb\r"), ElementsAre("a", "\n", "b", "\r"));
  EXPECT_THAT(split("x++y|x", "xxy xx"), ElementsAre("xxy", " ", "x", "x"));
  EXPECT_THAT(split("x{2,}?", "xxxxx"), ElementsAre("xx", "xx", "x"));
  EXPECT_THAT(split("(?<=a)b+", "abb b"), ElementsAre("a", "bb", " b"));
  EXPECT_THAT(split("(?<!a)b", "abb"), ElementsAre("ab", "b"));
  EXPECT_THAT(split("(?>a|ab)c", "abcac"), ElementsAre("abc", "ac"));
  EXPECT_THAT(split("(a|ab)(c|bcd)?", "abcd"), ElementsAre("abcd"));
  EXPECT_THAT(split("\\u4E2D+", "a\u4E2D\u4E2D"), ElementsAre("a", "\u4E2D\u4E2D"));
  EXPECT_THAT(split("[\\-a-c]+", "x-abcd"), ElementsAre("x", "-abc", "d"));
  EXPECT_THAT(split("[^a&-]", "a&b-"), ElementsAre("a&", "b", "-"));
  EXPECT_THAT(split("a\tb", "a\tb\ta"), ElementsAre("a\tb", "\ta"));
}

TEST(Regex, RefusesWhatTheEnginesReadDifferently) {
  const std::vector<std::pair<std::string_view, std::string_view>> cases = {
      {"^a", "the anchor '^'"},
      {"a$", "the anchor '$'"},
      {"\\w+", "the escape '\\w'"},
      {"\\bx", "the escape '\\b'"},
      {"\\h", "the escape '\\h'"},
      {"\\v", "the escape '\\v'"},
      {"\\x{e9}", "the escape '\\x'"},
      {"(a)\\1", "the escape '\\1'"},
      {"a\\", "a '\\' at the end"},
      {"\\u12", "\\u without four digits"},
      {"\\pL", "\\p without {NAME}"},
      {"\\p{L", "\\p without {NAME}"},
      {"\\p{}", "a property without a name"},
      {"\\p{^L}", "the property '^L'"},
      {"[[a]b]", "'[' inside a character class"},
      {"[a&&b]", "'&&' inside a character class"},
      {"[]a]", "a character class that begins with ']'"},
      {"[a", "a character class that is not closed"},
      {"[\\s-z]", "a '-' after a set in a class"},
      {"[!-\\s]", "a '-' before a set in a class"},
      {"(?i)a", "the group '(?i'"},
      {"(?m:a)", "the group '(?m'"},
      {"(?<n>a)", "the group '(?<'"},
      {"(*FAIL)", "the group '(*F'"},
      {"(a", "a group that is not closed"},
      {"a)", "a ')' that closes nothing"},
      {"a{1,2}+", "'+' after an interval"},
      {"a{2}?", "'?' after {n}"},
      {"a{,3}", "a '{' that begins no"},
      {"a{x}", "a '{' that begins no"},
      {"a+*", "a quantifier of a quantifier"},
      {"a{2}{3}", "a quantifier of a quantifier"},
      {"(?i:ss)", "'ss' in a (?i: group"},
      {"(?i:aFi)", "'fi' in a (?i: group"},
      {"(?i:\\p{Lu})", "a property in a (?i: group"},
      {"(?i:\u00E9)", "not ASCII in a (?i: group"},
  };
  for (const auto& [pattern, construct] : cases) {
    SCOPED_TRACE(pattern);
    expect_error(Regex::compile(pattern, "f.json: key 'k'"), Code::unsupported,
                 {"f.json: key 'k' is ", construct, "expected constructs that all engines agree on"});
  }
}

TEST(Regex, RefusesWhatDoesNotCompile) {
  for (const std::string_view pattern : {"*a", "\\p{Xx}", "\\p{Nonsense}", "a{3,1}", "[z-a]", "(?<=a+)b"}) {
    SCOPED_TRACE(pattern);
    expect_error(Regex::compile(pattern, "f.json: key 'k'"), Code::unsupported,
                 {"f.json: key 'k' is ", "does not compile", "expected a regular expression"});
  }
  expect_error(Regex::compile(std::string(20000, 'a'), "k"), Code::unsupported, {"has 20000 bytes", "at most 16384"});
}

// The number of ways to try is exponential in the text: given up, always at the same place.
TEST(Regex, GivesUpAfterTheLimit) {
  const std::string text = "xb" + std::string(60, 'a') + "c";
  const auto pieces = split("b|(?:a+a+)+!", text);
  EXPECT_THAT(pieces, ElementsAre("x", "b", std::string(60, 'a') + "c"));
}

TEST(Regex, LongMatchesNeedNoStack) {
  const std::string text(300000, 'a');
  EXPECT_THAT(split("(?:a|b)+", text), ElementsAre(text));
  EXPECT_THAT(split("\\s+(?!\\S)|\\s+", std::string(300000, ' ') + "x"),
              ElementsAre(std::string(299999, ' '), " ", "x"));
}

TEST(PreTokenizer, ByteLevelPattern) {
  EXPECT_THAT(split(kByteLevelPattern, "I'll don't  say 123abc!? \n x"),
              ElementsAre("I", "'ll", " don", "'t", " ", " say", " 123", "abc", "!?", " \n", " x"));
  EXPECT_THAT(split(kByteLevelPattern, "'LL  "), ElementsAre("'", "LL", "  "));
}

}  // namespace
}  // namespace blockdraft
