#include "text/added_tokens.h"

#include <random>

#include <gtest/gtest.h>

#include "unit/text/tiny_tokenizer.h"

namespace blockdraft {
namespace {

using Ids = std::vector<int32_t>;

Json with_tokens(std::vector<Json> tokens) {
  Json document = tiny_tokenizer_json();
  document["added_tokens"] = std::move(tokens);
  return document;
}

// Expected ids: the Hugging Face implementation, version 0.23, with the same file.
Json flags_json() {
  return with_tokens(
      {added_token_json(270, "<l>", {"lstrip", "special"}), added_token_json(271, "<r>", {"rstrip", "special"}),
       added_token_json(272, "<w>", {"single_word", "special"}), added_token_json(273, "<b>", {"lstrip", "rstrip"}),
       added_token_json(274, "wo", {"single_word"}), added_token_json(275, "  ", {}),
       added_token_json(276, "<l><r>", {"special"}), added_token_json(277, "<l>x", {"special"})});
}

TEST(AddedTokens, FlagsMeanWhatTheyMeanToTheOriginal) {
  const std::vector<std::pair<std::string_view, Ids>> cases = {
      {"a <l> b", {97, 270, 32, 98}},
      {"a <r>  b", {97, 32, 271, 275, 98}},
      {"a<w>b", {97, 60, 119, 62, 98}},
      {"a <w> b", {97, 32, 272, 32, 98}},
      {"_<w>", {95, 60, 119, 62}},
      {"<w>\u00E9", {60, 119, 62, 265}},
      {"( <b> )", {40, 273, 41}},
      {"wo wow wo", {274, 32, 119, 111, 119, 32, 274}},
      {" wo\u0301", {32, 119, 111, 204, 129}},
      {"<l><r>", {276}},
      {"<l>x<l>", {277, 270}},
      {"a  <l>", {97, 275, 270}},
      {"<r>  <l>", {271, 275, 270}},
  };
  for (const auto& [text, ids] : cases) EXPECT_EQ(encode(flags_json(), text), ids) << text;
}

TEST(AddedTokens, SpecialOnesAreTextWhenNotParsed) {
  const Tokenizer::EncodeOptions options{.parse_special_tokens = false};
  EXPECT_EQ(encode(flags_json(), "a <l> b", options), (Ids{97, 32, 60, 108, 62, 32, 98}));
  EXPECT_EQ(encode(flags_json(), "( <b> )", options), (Ids{40, 273, 41}));
  EXPECT_EQ(encode(flags_json(), "a  b", options), (Ids{97, 275, 98}));
}

TEST(AddedTokens, NormalizedOnesAreFoundInNormalizedText) {
  Json document = with_tokens(
      {added_token_json(270, "<s>", {"special"}), added_token_json(271, "\u00E9a", {"normalized"}),
       added_token_json(272, "<e\u0301>", {"normalized", "special"}), added_token_json(273, "e\u0301x", {})});
  document["normalizer"] = {{"type", "NFC"}};
  EXPECT_EQ(encode(document, "\u00E9a e\u0301a"), (Ids{271, 32, 271}));
  EXPECT_EQ(encode(document, "<e\u0301><\u00E9>"), (Ids{272, 272}));
  EXPECT_EQ(encode(document, "e\u0301x \u00E9x"), (Ids{273, 32, 265, 120}));
}

TEST(AddedTokens, MayBeInTheVocabularyAlready) {
  Json document = with_tokens({added_token_json(270, "\uFF5Cy", {"special"}), added_token_json(271, "\u0120q", {})});
  document["model"]["vocab"]["\uFF5Cy"] = 270;
  document["model"]["vocab"]["\u0120q"] = 271;
  EXPECT_EQ(encode(document, "\uFF5Cy\u0120q a"), (Ids{270, 271, 259}));
}

TEST(StringFinder, FindsTheLeftmostThenLongest) {
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    std::vector<std::string> words;
    StringFinder finder;
    for (size_t i = 0; i < 1 + random() % 8; ++i) {
      std::string word(1 + random() % 4, 0);
      for (char& c : word) c = "ab\xFF"[random() % 3];
      if (std::find(words.begin(), words.end(), word) != words.end()) continue;
      finder.add(word, words.size());
      words.push_back(word);
    }
    finder.finish();
    std::string text(random() % 20, 0);
    for (char& c : text) c = "abc\xFF"[random() % 4];
    for (size_t from = 0; from <= text.size(); ++from) {
      std::optional<StringFinder::Match> expected;
      for (size_t begin = from; begin < text.size() && !expected; ++begin) {
        for (size_t i = 0; i < words.size(); ++i) {
          const size_t end = begin + words[i].size();
          if (text.compare(begin, words[i].size(), words[i]) != 0 || (expected && expected->end >= end)) continue;
          expected = StringFinder::Match{begin, end, i};
        }
      }
      const auto found = finder.find(text, from);
      ASSERT_EQ(found.has_value(), expected.has_value());
      if (!found) continue;
      ASSERT_EQ(found->begin, expected->begin);
      ASSERT_EQ(found->end, expected->end);
      ASSERT_EQ(found->token, expected->token);
    }
  }
}

}  // namespace
}  // namespace blockdraft
