// What a tokenizer.json may say, and how it is refused when it says something else.
#include <functional>

#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "unit/text/tiny_tokenizer.h"

namespace blockdraft {
namespace {

using Ids = std::vector<int32_t>;

struct Refusal {
  const char* name;
  std::function<void(Json&)> change;
  Code code;
  std::vector<std::string> parts;
};

void expect_refusal(const Refusal& refusal) {
  SCOPED_TRACE(refusal.name);
  Json document = tiny_tokenizer_json();
  refusal.change(document);
  const auto model = parse_tokenizer(document);
  expect_error(model, refusal.code, {"tokenizer.json: key '"});
  if (model) return;
  for (const std::string& part : refusal.parts) {
    EXPECT_NE(model.error().message.find(part), std::string::npos) << part << " is not in: " << model.error().message;
  }
}

TEST(TokenizerJson, RefusesModels) {
  const std::vector<Refusal> cases = {
      {"type",
       [](Json& d) { d["model"]["type"] = "WordPiece"; },
       Code::unsupported,
       {"'model.type' is \"WordPiece\", expected 'BPE'"}},
      {"dropout",
       [](Json& d) { d["model"]["dropout"] = 0.1; },
       Code::unsupported,
       {"'model.dropout' is 0.1, expected null"}},
      {"unk_token",
       [](Json& d) { d["model"]["unk_token"] = "<unk>"; },
       Code::unsupported,
       {"'model.unk_token' is \"<unk>\", expected null"}},
      {"prefix",
       [](Json& d) { d["model"]["continuing_subword_prefix"] = "##"; },
       Code::unsupported,
       {"'model.continuing_subword_prefix' is \"##\", expected null or an empty string"}},
      {"suffix",
       [](Json& d) { d["model"]["end_of_word_suffix"] = "</w>"; },
       Code::unsupported,
       {"'model.end_of_word_suffix' is \"</w>\""}},
      {"fuse_unk", [](Json& d) { d["model"]["fuse_unk"] = true; }, Code::unsupported, {"'model.fuse_unk' is true"}},
      {"byte_fallback",
       [](Json& d) { d["model"]["byte_fallback"] = true; },
       Code::unsupported,
       {"'model.byte_fallback' is true, expected false"}},
      {"ignore_merges",
       [](Json& d) { d["model"]["ignore_merges"] = 1; },
       Code::corrupt_file,
       {"'model.ignore_merges' is 1, expected true or false"}},
      {"unknown key",
       [](Json& d) { d["model"]["new\nidea"] = 1; },
       Code::unsupported,
       {"'model.new idea' is 1, expected no such key"}},
      {"no model", [](Json& d) { d.erase("model"); }, Code::corrupt_file, {"'model' is absent, expected an object"}},
      {"no vocab", [](Json& d) { d["model"].erase("vocab"); }, Code::corrupt_file, {"'model.vocab' is absent"}},
      {"vocab list",
       [](Json& d) {
         d["model"]["vocab"] = {"a", "b"};
       },
       Code::corrupt_file,
       {"'model.vocab' is [\"a\", \"b\"], expected an object"}},
      {"no merges", [](Json& d) { d["model"].erase("merges"); }, Code::corrupt_file, {"'model.merges' is absent"}},
      {"merges object",
       [](Json& d) {
         d["model"]["merges"] = {{"a", 1}};
       },
       Code::corrupt_file,
       {"'model.merges' is an object, expected a list"}},
  };
  for (const Refusal& refusal : cases) expect_refusal(refusal);
}

TEST(TokenizerJson, RefusesTables) {
  const std::string ids = "expected an id from 0 to 2097151";
  const std::vector<Refusal> cases = {
      {"negative id",
       [](Json& d) { d["model"]["vocab"]["zz"] = -1; },
       Code::corrupt_file,
       {"'model.vocab' has -1 for token 'zz'", ids}},
      {"huge id", [](Json& d) { d["model"]["vocab"]["zz"] = 1 << 21; }, Code::corrupt_file, {"has 2097152 for", ids}},
      {"fraction", [](Json& d) { d["model"]["vocab"]["zz"] = 1.5; }, Code::corrupt_file, {"has 1.5 for", ids}},
      {"string", [](Json& d) { d["model"]["vocab"]["zz"] = "1"; }, Code::corrupt_file, {"has '1' for", ids}},
      {"null", [](Json& d) { d["model"]["vocab"]["zz"] = nullptr; }, Code::corrupt_file, {"has null for", ids}},
      {"boolean", [](Json& d) { d["model"]["vocab"]["zz"] = true; }, Code::corrupt_file, {"has a boolean for", ids}},
      {"list", [](Json& d) { d["model"]["vocab"]["zz"] = {1}; }, Code::corrupt_file, {"has a list for", ids}},
      {"object",
       [](Json& d) { d["model"]["vocab"]["zz"] = Json::object(); },
       Code::corrupt_file,
       {"has an object for", ids}},
      {"same id",
       [](Json& d) { d["model"]["vocab"]["zz"] = 300, d["model"]["vocab"]["zzz"] = 300; },
       Code::corrupt_file,
       {"'model.vocab' gives id 300 to 'zzz' and to another token, expected unique ids"}},
      {"no byte",
       [](Json& d) { d["model"]["vocab"].erase("q"); },
       Code::unsupported,
       {"'model.vocab' has no token for byte 0x71, expected 'q'"}},
      {"one part",
       [](Json& d) { d["model"]["merges"] = {"ab"}; },
       Code::corrupt_file,
       {"'model.merges' has 'ab' as merge 0, expected two tokens"}},
      {"three parts",
       [](Json& d) {
         d["model"]["merges"] = {"a b", "a b c"};
       },
       Code::corrupt_file,
       {"has 'a b c' as merge 1, expected two tokens"}},
      {"list of one",
       [](Json& d) { d["model"]["merges"] = {Json::array({"a"})}; },
       Code::corrupt_file,
       {"has a list of 1 as merge 0"}},
      {"list of three",
       [](Json& d) {
         d["model"]["merges"] = {Json::array({"a", "b", "c"})};
       },
       Code::corrupt_file,
       {"has a list of 3 as merge 0"}},
      {"deep list",
       [](Json& d) {
         d["model"]["merges"] = {Json::array({Json::array({"a"}), "b"})};
       },
       Code::corrupt_file,
       {"has a list as merge 0"}},
      {"number", [](Json& d) { d["model"]["merges"] = {7}; }, Code::corrupt_file, {"has 7 as merge 0"}},
      {"object in list",
       [](Json& d) {
         d["model"]["merges"] = Json::array({{{"a", "b"}}});
       },
       Code::corrupt_file,
       {"as merge 0, expected two tokens"}},
      {"unknown left",
       [](Json& d) { d["model"]["merges"] = {"qq b"}; },
       Code::corrupt_file,
       {"has 'qq' and 'b' as merge 0, and 'qq' is not in model.vocab"}},
      {"unknown whole",
       [](Json& d) { d["model"]["merges"] = {"q b"}; },
       Code::corrupt_file,
       {"and 'qb' is not in model.vocab"}},
      {"merge twice",
       [](Json& d) {
         d["model"]["merges"] = {"a b", "b c", "a b"};
       },
       Code::corrupt_file,
       {"has 'a' and 'b' as merge 2 and earlier, expected unique merges"}},
  };
  for (const Refusal& refusal : cases) expect_refusal(refusal);
}

TEST(TokenizerJson, RefusesSteps) {
  const auto pre = [](std::vector<Json> steps) {
    return [steps](Json& d) { d["pre_tokenizer"] = pre_tokenizer_json(steps); };
  };
  Json removed = split_json("a");
  removed["behavior"] = "Removed";
  Json inverted = split_json("a");
  inverted["invert"] = true;
  Json literal = split_json("a");
  literal["pattern"] = {{"String", " "}};
  const Json byte_level = byte_level_json(false, false);
  const std::vector<Refusal> cases = {
      {"no pre-tokenizer",
       [](Json& d) { d["pre_tokenizer"] = nullptr; },
       Code::unsupported,
       {"'pre_tokenizer' is null, expected a pre-tokenizer that ends with ByteLevel"}},
      {"empty sequence", pre({}), Code::unsupported, {"expected a pre-tokenizer that ends with ByteLevel"}},
      {"not last",
       pre({byte_level, split_json("a")}),
       Code::unsupported,
       {"'pre_tokenizer.pretokenizers[0].type' is \"ByteLevel\", expected 'Split' or 'Digits' before"}},
      {"no ByteLevel", pre({split_json("a")}), Code::unsupported, {"is \"Split\", expected 'ByteLevel' as the last"}},
      {"Metaspace", pre({{{"type", "Metaspace"}}, byte_level}), Code::unsupported, {"is \"Metaspace\", expected"}},
      {"behavior", pre({removed, byte_level}), Code::unsupported, {"behavior' is \"Removed\", expected 'Isolated'"}},
      {"invert", pre({inverted, byte_level}), Code::unsupported, {"invert' is true, expected false"}},
      {"string pattern",
       pre({literal, byte_level}),
       Code::unsupported,
       {"pattern.String' is \" \", expected no such key"}},
      {"regex", pre({split_json("\\w"), byte_level}), Code::unsupported, {"pattern.Regex' is '\\w' with the escape"}},
      {"too many", pre(std::vector<Json>(40, byte_level)), Code::limit_exceeded, {"has 40 steps, expected at most 32"}},
      {"no flag",
       [](Json& d) { d["pre_tokenizer"].erase("add_prefix_space"); },
       Code::corrupt_file,
       {"'pre_tokenizer.add_prefix_space' is absent, expected true or false"}},
      {"normalizer",
       [](Json& d) {
         d["normalizer"] = {{"type", "NFKC"}};
       },
       Code::unsupported,
       {"'normalizer.type' is \"NFKC\", expected 'NFC'"}},
      {"decoder",
       [](Json& d) {
         d["decoder"] = {{"type", "WordPiece"}};
       },
       Code::unsupported,
       {"'decoder.type' is \"WordPiece\", expected 'ByteLevel'"}},
      {"no decoder", [](Json& d) { d.erase("decoder"); }, Code::unsupported, {"'decoder' is absent"}},
      {"post-processor",
       [](Json& d) {
         d["post_processor"] = {{"type", "BertProcessing"}};
       },
       Code::unsupported,
       {"'post_processor.type' is \"BertProcessing\", expected 'ByteLevel' or one 'TemplateProcessing'"}},
      {"version", [](Json& d) { d["version"] = "2.0"; }, Code::unsupported, {"'version' is \"2.0\", expected '1.0'"}},
      {"truncation",
       [](Json& d) {
         d["truncation"] = {{"max_length", 5}};
       },
       Code::unsupported,
       {"'truncation' is an object, expected null"}},
      {"padding", [](Json& d) { d["padding"] = Json::object(); }, Code::unsupported, {"'padding' is an object"}},
      {"unknown key", [](Json& d) { d["extra"] = 1; }, Code::unsupported, {"'extra' is 1, expected no such key"}},
  };
  for (const Refusal& refusal : cases) expect_refusal(refusal);
}

TEST(TokenizerJson, RefusesAddedTokens) {
  const auto tokens = [](std::vector<Json> list) { return [list](Json& d) { d["added_tokens"] = list; }; };
  Json incomplete = added_token_json(270, "<s>", {});
  incomplete.erase("lstrip");
  const std::vector<Refusal> cases = {
      {"object",
       [](Json& d) {
         d["added_tokens"] = {{"a", 1}};
       },
       Code::corrupt_file,
       {"expected a list"}},
      {"negative id",
       tokens({added_token_json(-1, "<s>", {})}),
       Code::corrupt_file,
       {"'added_tokens[0].id' is -1, expected an integer from 0 to 2097151"}},
      {"empty",
       tokens({added_token_json(270, "", {})}),
       Code::unsupported,
       {"content' is \"\", expected 1 to 1024 bytes"}},
      {"long", tokens({added_token_json(270, std::string(2000, 'x'), {})}), Code::unsupported, {"1 to 1024 bytes"}},
      {"incomplete", tokens({incomplete}), Code::corrupt_file, {"'added_tokens[0].lstrip' is absent"}},
      {"other id",
       tokens({added_token_json(270, "ab", {})}),
       Code::mismatch,
       {"'added_tokens[0].id' is 270, expected 256, the id of 'ab' in model.vocab"}},
      {"taken id",
       tokens({added_token_json(256, "<s>", {})}),
       Code::mismatch,
       {"'added_tokens[0].id' is 256, expected an id other than that of 'ab'"}},
      {"same id",
       tokens({added_token_json(270, "<s>", {}), added_token_json(270, "<t>", {})}),
       Code::corrupt_file,
       {"'added_tokens' gives id 270 to '<t>' and to another token"}},
      {"same content",
       tokens({added_token_json(270, "<s>", {}), added_token_json(271, "<s>", {"normalized"})}),
       Code::corrupt_file,
       {"'added_tokens' has content '<s>' twice"}},
  };
  for (const Refusal& refusal : cases) expect_refusal(refusal);
}

Json template_json(Json single) {
  return {{"type", "TemplateProcessing"},
          {"single", std::move(single)},
          {"pair", Json::array()},
          {"special_tokens",
           {{"<s>", {{"id", "<s>"}, {"ids", {270}}, {"tokens", {"<s>"}}}},
            {"E", {{"id", "E"}, {"ids", {98, 270}}, {"tokens", {"b", "<s>"}}}},
            {"no", {{"id", "no"}, {"ids", {999}}, {"tokens", {"no"}}}}}}};
}

Json special_piece(const char* id) { return {{"SpecialToken", {{"id", id}, {"type_id", 0}}}}; }
Json text_piece(const char* id) { return {{"Sequence", {{"id", id}, {"type_id", 0}}}}; }

TEST(TokenizerJson, RefusesTemplates) {
  const auto single = [](std::vector<Json> pieces) {
    return [pieces](Json& d) {
      d["added_tokens"] = {added_token_json(270, "<s>", {"special"})};
      d["post_processor"] = template_json(pieces);
    };
  };
  const std::vector<Refusal> cases = {
      {"no text", single({special_piece("<s>")}), Code::unsupported, {"expected a list with the Sequence 'A'"}},
      {"text twice",
       single({text_piece("A"), text_piece("A")}),
       Code::unsupported,
       {"single[1].Sequence.id' is \"A\""}},
      {"text B", single({text_piece("B")}), Code::unsupported, {"is \"B\", expected 'A', once"}},
      {"unlisted",
       single({special_piece("<t>"), text_piece("A")}),
       Code::corrupt_file,
       {"is \"<t>\", expected a key of special_tokens"}},
      {"unknown id",
       single({special_piece("no"), text_piece("A")}),
       Code::mismatch,
       {"special_tokens.no.ids[0]' is 999, expected the id of a token"}},
      {"neither", single({Json::object()}), Code::corrupt_file, {"expected one of SpecialToken and Sequence"}},
      {"two templates",
       [](Json& d) {
         const Json step = template_json({text_piece("A")});
         d["post_processor"] = {{"type", "Sequence"}, {"processors", {step, step}}};
       },
       Code::unsupported,
       {"processors[1].type' is \"TemplateProcessing\""}},
  };
  for (const Refusal& refusal : cases) expect_refusal(refusal);
}

TEST(TokenizerJson, RefusesWhatIsNoJson) {
  const auto refuse = [](std::string_view text, std::string_view part) {
    expect_error(parse_tokenizer(text, "tokenizer.json"), Code::corrupt_file, {"tokenizer.json: ", part});
  };
  refuse("", "not valid JSON at byte");
  refuse("{\"model\": {\"vocab\": {\"a\": 1", "not valid JSON at byte");
  refuse("{} {}", "not valid JSON at byte");
  refuse(std::string_view("{}\0{}", 5), "not valid JSON at byte 2 (a NUL byte)");
  refuse("{\"a\": \"\xFF\"}", "not valid JSON at byte");
  refuse("[]", "is a list, expected an object");
  refuse("{\"model\": 1, \"model\": 1}", "key 'model' occurs twice in one object");
  refuse("{\"model\": {\"vocab\": {}, \"vocab\": {}}}", "key 'vocab' occurs twice in one object");
  refuse("{\"model\": {\"vocab\": {\"a\": 0, \"a\": 1}}}", "key 'model.vocab' has token 'a' twice");
  refuse(std::string(100, '['), "JSON nested deeper than 64 levels");
  // Only the object at model is special.
  refuse("{\"model\": [{\"vocab\": {\"a\": \"b\"}}]}", "key 'model' is [an object], expected an object");
  expect_error(parse_tokenizer("{\"x\": {\"vocab\": {\"a\": \"b\"}}}", "f"), Code::unsupported,
               {"key 'x' is an object"});
}

TEST(TokenizerJson, ReadsTheTemplate) {
  Json document = tiny_tokenizer_json();
  document["added_tokens"] = {added_token_json(270, "<s>", {"special"})};
  document["post_processor"] = template_json({special_piece("<s>"), text_piece("A"), special_piece("E")});
  EXPECT_EQ(encode(document, "ab"), (Ids{270, 256, 98, 270}));
  EXPECT_EQ(encode(document, ""), (Ids{270, 98, 270}));
  EXPECT_EQ(encode(document, "ab", {.add_special_tokens = false}), (Ids{256}));
  const Json step = document["post_processor"];
  document["post_processor"] = {{"type", "Sequence"}, {"processors", {byte_level_json(true, true), step}}};
  EXPECT_EQ(encode(document, "ab"), (Ids{270, 256, 98, 270}));
}

// Expected ids: the Hugging Face implementation, version 0.23, with the same file.
TEST(TokenizerJson, ReadsPreTokenizers) {
  Json document = tiny_tokenizer_json();
  document["pre_tokenizer"] = byte_level_json(true, false);
  EXPECT_EQ(encode(document, "ab c"), (Ids{32, 256, 32, 99}));
  EXPECT_EQ(encode(document, " a"), (Ids{259}));
  EXPECT_EQ(encode(document, "1a"), (Ids{32, 49, 97}));
  EXPECT_EQ(encode(document, ""), Ids{});
  document["pre_tokenizer"] = byte_level_json(true, true);
  EXPECT_EQ(encode(document, "ab c"), (Ids{32, 256, 32, 99}));
  document["pre_tokenizer"] =
      pre_tokenizer_json({{{"type", "Digits"}, {"individual_digits", true}}, byte_level_json(false, true)});
  EXPECT_EQ(encode(document, "a12 3"), (Ids{97, 49, 50, 32, 51}));
  document["pre_tokenizer"] =
      pre_tokenizer_json({{{"type", "Digits"}, {"individual_digits", false}}, byte_level_json(true, false)});
  EXPECT_EQ(encode(document, "a12 3"), (Ids{259, 32, 262, 32, 32, 51}));
  document["pre_tokenizer"] = pre_tokenizer_json({split_json("b"), split_json("x{2}"), byte_level_json(false, false)});
  EXPECT_EQ(encode(document, "abcabxxxx"), (Ids{97, 98, 99, 97, 98, 266, 266}));
}

TEST(TokenizerJson, ReadsOlderForms) {
  Json document = tiny_tokenizer_json();
  const Ids expected = encode(document, "abc abcab 123 ox");
  Json lines = Json::array();
  for (const Json& pair : document["model"]["merges"]) {
    lines.push_back(pair[0].get<std::string>() + " " + pair[1].get<std::string>());
  }
  document["model"]["merges"] = lines;
  for (const char* key : {"type", "ignore_merges", "byte_fallback", "fuse_unk"}) document["model"].erase(key);
  document["normalizer"] = {{"type", "Sequence"}, {"normalizers", Json::array()}};
  EXPECT_EQ(encode(document, "abc abcab 123 ox"), expected);
}

TEST(TokenizerJson, MergesBeforeTheVocabulary) {
  const Json document = tiny_tokenizer_json();
  std::string model = "{\"merges\": " + document["model"]["merges"].dump() +
                      ", \"vocab\": " + document["model"]["vocab"].dump() + ", \"type\": \"BPE\"}";
  const std::string text = "{\"decoder\": " + document["decoder"].dump() + ", \"model\": " + model +
                           ", \"pre_tokenizer\": " + document["pre_tokenizer"].dump() + "}";
  const auto parsed = parse_tokenizer(text, "tokenizer.json");
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  EXPECT_EQ((*parsed)->encode("abc", {}), (Ids{258}));
}

}  // namespace
}  // namespace blockdraft
