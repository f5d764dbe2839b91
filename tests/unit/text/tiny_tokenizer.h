// A small tokenizer.json to vary: the 256 bytes as tokens 0 to 255, and some merges.
#pragma once

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "text/byte_level.h"
#include "text/tokenizer_model.h"

namespace blockdraft {

inline std::string spell(std::string_view bytes) {
  std::string spelling;
  for (const char c : bytes) spelling.append(byte_spelling(static_cast<unsigned char>(c)));
  return spelling;
}

inline Json byte_level_json(bool add_prefix_space, bool use_regex) {
  return {
      {"type", "ByteLevel"}, {"add_prefix_space", add_prefix_space}, {"trim_offsets", true}, {"use_regex", use_regex}};
}

inline Json split_json(const std::string& regex) {
  return {{"type", "Split"}, {"pattern", {{"Regex", regex}}}, {"behavior", "Isolated"}, {"invert", false}};
}

inline Json pre_tokenizer_json(std::vector<Json> steps) {
  return {{"type", "Sequence"}, {"pretokenizers", std::move(steps)}};
}

// Ids of the merged tokens, in the order of their merges: ab 256, bc 257, abc 258, " a" 259, two spaces 260, three
// spaces 261, 12 262, 123 263, ox 264, U+00E9 265, xx 266, xxxx 267, cab 268, ba 269.
inline constexpr int32_t kFirstFreeId = 270;

inline Json tiny_tokenizer_json() {
  Json vocabulary = Json::object();
  for (int byte = 0; byte < 256; ++byte) vocabulary[spell(std::string(1, static_cast<char>(byte)))] = byte;
  const std::vector<std::pair<std::string, std::string>> pairs = {
      {"a", "b"},  {"b", "c"}, {"ab", "c"},      {"a", "bc"}, {" ", "a"},   {" ", " "},  {"  ", " "}, {"1", "2"},
      {"12", "3"}, {"o", "x"}, {"\xC3", "\xA9"}, {"x", "x"},  {"xx", "xx"}, {"c", "ab"}, {"b", "a"}};
  Json merges = Json::array();
  for (const auto& [left, right] : pairs) {
    merges.push_back({spell(left), spell(right)});
    if (vocabulary.contains(spell(left + right))) continue;  // "abc" comes about in two ways
    vocabulary[spell(left + right)] = vocabulary.size();
  }
  return {{"version", "1.0"},
          {"truncation", nullptr},
          {"padding", nullptr},
          {"added_tokens", Json::array()},
          {"normalizer", nullptr},
          {"pre_tokenizer", byte_level_json(false, true)},
          {"post_processor", nullptr},
          {"decoder", byte_level_json(true, true)},
          {"model",
           {{"type", "BPE"},
            {"dropout", nullptr},
            {"unk_token", nullptr},
            {"continuing_subword_prefix", ""},
            {"end_of_word_suffix", nullptr},
            {"fuse_unk", false},
            {"byte_fallback", false},
            {"ignore_merges", false},
            {"vocab", vocabulary},
            {"merges", merges}}}};
}

// An entry of added_tokens; `flags` are the names of those that are true.
inline Json added_token_json(int32_t id, const std::string& content, std::initializer_list<const char*> flags) {
  Json token = {{"id", id}, {"content", content}};
  for (const char* name : {"single_word", "lstrip", "rstrip", "normalized", "special"}) token[name] = false;
  for (const char* name : flags) token[name] = true;
  return token;
}

inline Result<std::shared_ptr<const TokenizerModel>> parse_tokenizer(const Json& document) {
  return parse_tokenizer(document.dump(), "tokenizer.json");
}

inline std::vector<int32_t> encode(const Json& document, std::string_view text,
                                   const Tokenizer::EncodeOptions& options = {}) {
  const auto model = parse_tokenizer(document);
  if (!model) throw std::runtime_error(model.error().message);
  return (*model)->encode(text, options);
}

}  // namespace blockdraft
