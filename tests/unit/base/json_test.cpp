#include "base/json.h"

#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "support/expect_error.h"

namespace blockdraft {
namespace {

using namespace std::string_literals;

constexpr const char* kOrigin = "request body";

std::string nested(int depth) {
  return std::string(static_cast<size_t>(depth), '[') + std::string(static_cast<size_t>(depth), ']');
}

TEST(ParseJson, ReadsEveryKindOfValue) {
  const auto json = parse_json(R"( {"a":[1,-2,2.5,true,null,"x"],"b":{"c":{}}} )", kOrigin);
  ASSERT_TRUE(json.ok()) << json.error().message;
  EXPECT_EQ(json->at("a").size(), 6u);
  EXPECT_TRUE(json->at("a")[0].is_number_unsigned());
  EXPECT_EQ(json->at("a")[1].get<int>(), -2);
  EXPECT_EQ(json->at("a")[2].get<double>(), 2.5);
  EXPECT_TRUE(json->at("b").at("c").is_object());
  EXPECT_TRUE(parse_json("7", kOrigin).ok());
}

TEST(ParseJson, RefusesSyntaxErrorsWithTheirPlace) {
  expect_error(parse_json("", kOrigin), Code::corrupt_file, {kOrigin, "not valid JSON at byte"});
  expect_error(parse_json("{\"a\":1,}", kOrigin), Code::corrupt_file, {kOrigin, "at byte 8"});
  for (const char* text : {"{", "[1", "{\"a\"}", "[1,]", "nul", "01", "1.", "+1", "'a'", "{a:1}", "NaN", "Infinity",
                           "-Infinity", "[1 2]", "// x\n1", "\"\t\"", "\"\\x\"", "\"open"}) {
    expect_error(parse_json(text, kOrigin), Code::corrupt_file, {kOrigin, "not valid JSON at byte"});
  }
}

TEST(ParseJson, RefusesTrailingText) {
  for (const auto& text : {"{} {}"s, "1 2"s, "[]x"s, "{}]"s}) {
    expect_error(parse_json(text, kOrigin), Code::corrupt_file, {kOrigin, "not valid JSON at byte"});
  }
}

TEST(ParseJson, RefusesNulBytesWhereverTheyAre) {
  for (const auto& text : {"{}\0"s, "{}\0garbage"s, "\0{}"s,
                           "[1,\0"
                           "2]"s,
                           "\"a\0b\""s}) {
    expect_error(parse_json(text, kOrigin), Code::corrupt_file,
                 {kOrigin, fmt::format("at byte {}", text.find('\0')), "NUL"});
  }
  EXPECT_EQ(parse_json(R"("a\u0000b")", kOrigin).value().get<std::string>(), "a\0b"s);  // escaped it is text
}

TEST(ParseJson, NestingEndsAt64Levels) {
  EXPECT_TRUE(parse_json(nested(kMaxJsonDepth), kOrigin).ok());
  expect_error(parse_json(nested(kMaxJsonDepth + 1), kOrigin), Code::corrupt_file,
               {kOrigin, "nested deeper than 64 levels"});
  // Side by side is not deep.
  std::string wide = "[";
  for (int i = 0; i < 1000; ++i) wide += nested(60) + ",";
  EXPECT_TRUE(parse_json(wide + "1]", kOrigin).ok());
}

TEST(ParseJson, AMegabyteOfBracketsIsAnErrorLikeAnother) {
  expect_error(parse_json(std::string(1 << 20, '['), kOrigin), Code::corrupt_file, {kOrigin, "nested deeper"});
  std::string objects;
  while (objects.size() < (1 << 20)) objects += "{\"a\":[";
  expect_error(parse_json(objects, kOrigin), Code::corrupt_file, {kOrigin, "nested deeper"});
}

TEST(ParseJson, RefusesDuplicateKeys) {
  expect_error(parse_json(R"({"a":1,"b":2,"a":1})", kOrigin), Code::corrupt_file, {kOrigin, "key 'a'", "twice"});
  expect_error(parse_json(R"([{"x":{"k":1,"k":2}}])", kOrigin), Code::corrupt_file, {kOrigin, "key 'k'", "twice"});
  // The same key spelled with an escape.
  expect_error(parse_json(R"({"a":1,"\u0061":2})", kOrigin), Code::corrupt_file, {kOrigin, "key 'a'", "twice"});
  // The same key in different objects is no duplicate, before, inside or after.
  EXPECT_TRUE(parse_json(R"({"a":{"a":{"a":1}},"b":{"a":2},"c":[{"a":1},{"a":1}]})", kOrigin).ok());
}

TEST(ParseJson, RefusesInvalidUtf8) {
  for (const auto& bytes : {"\xff"s, "\xc3"s, "\xc0\xaf"s, "\xe2\x82"s, "\xed\xa0\x80"s, "\xf5\x80\x80\x80"s,
                            "\xf4\x90\x80\x80"s, "\x80"s}) {
    for (const auto& text : {"\"" + bytes + "\"", "{\"" + bytes + "\":1}"}) {
      const auto result = parse_json(text, kOrigin);
      expect_error(result, Code::corrupt_file, {kOrigin, "not valid JSON at byte"});
      // The message itself must be text: it may become part of a JSON reply.
      EXPECT_NO_THROW(static_cast<void>(Json(result.error().message).dump()));
    }
  }
  EXPECT_EQ(parse_json("\"\xc3\xa9\xf0\x9f\x98\x80\"", kOrigin).value().get<std::string>(), "é😀");
}

TEST(ParseJson, RefusesHalfSurrogates) {
  for (const char* text : {R"("\ud800")", R"("\udc00")", R"("\ud800\u0041")", R"("\ud83d")"}) {
    expect_error(parse_json(text, kOrigin), Code::corrupt_file, {kOrigin, "not valid JSON at byte"});
  }
  EXPECT_EQ(parse_json(R"("\ud83d\ude00")", kOrigin).value().get<std::string>(), "😀");
}

TEST(ParseJson, NumbersBeyondEveryTypeAreRefusedOrNamedForWhatTheyAre) {
  expect_error(parse_json("1e999", kOrigin), Code::corrupt_file, {kOrigin, "not valid JSON"});
  expect_error(parse_json("[-1e999]", kOrigin), Code::corrupt_file, {kOrigin, "not valid JSON"});
  EXPECT_STREQ(json_type_name(*parse_json("18446744073709551615", kOrigin)), "an integer");
  EXPECT_STREQ(json_type_name(*parse_json("18446744073709551616", kOrigin)), "a number");
}

TEST(ParseJson, LongKeysDoNotMakeLongMessages) {
  const std::string key(1 << 20, 'k');
  const auto result = parse_json(fmt::format(R"({{"{}":1,"{}":2}})", key, key), kOrigin);
  expect_error(result, Code::corrupt_file, {"kkk...'"});
  EXPECT_LT(result.error().message.size(), 300u);
}

TEST(JsonTypeName, NamesEveryType) {
  EXPECT_STREQ(json_type_name(Json()), "null");
  EXPECT_STREQ(json_type_name(Json::object()), "an object");
  EXPECT_STREQ(json_type_name(Json::array()), "a list");
  EXPECT_STREQ(json_type_name(Json("x")), "a string");
  EXPECT_STREQ(json_type_name(Json(true)), "a boolean");
  EXPECT_STREQ(json_type_name(Json(-1)), "an integer");
  EXPECT_STREQ(json_type_name(Json(1u)), "an integer");
  EXPECT_STREQ(json_type_name(Json(1.0)), "a number");
}

TEST(Printable, KeepsTextAndFlattensControlCharacters) {
  EXPECT_EQ(printable("lm_head.weight"), "lm_head.weight");
  EXPECT_EQ(printable("é 😀"), "é 😀");
  EXPECT_EQ(printable("a\nb\r\tc\x7f\0d"s), "a b  c  d");
}

TEST(Printable, CutsLongTextBetweenCharacters) {
  const std::string exact(kMaxExcerpt, 'x');
  EXPECT_EQ(printable(exact), exact);
  EXPECT_EQ(printable(exact + "y"), exact + "...");
  // A character of two bytes across the limit goes altogether.
  EXPECT_EQ(printable(std::string(kMaxExcerpt - 1, 'x') + "éé"), std::string(kMaxExcerpt - 1, 'x') + "...");
}

TEST(JsonExcerpt, ShowsValuesAsTheyAreWritten) {
  EXPECT_EQ(json_excerpt(Json(8)), "8");
  EXPECT_EQ(json_excerpt(Json(2.5)), "2.5");
  EXPECT_EQ(json_excerpt(Json(false)), "false");
  EXPECT_EQ(json_excerpt(Json()), "null");
  EXPECT_EQ(json_excerpt(Json("a\nb")), R"("a\nb")");
  EXPECT_EQ(json_excerpt(Json("\xff")), "\"\xef\xbf\xbd\"");
  EXPECT_EQ(json_excerpt(Json::object({{"a", 1}})), "an object");
  EXPECT_EQ(json_excerpt(Json::array()), "[]");
  EXPECT_EQ(json_excerpt(Json::array({1, "x", Json::array({2})})), R"([1, "x", [2]])");
}

TEST(JsonExcerpt, CutsLongLists) {
  const std::string excerpt = json_excerpt(Json(std::vector<int>(1'000'000, 7)));
  EXPECT_EQ(excerpt.size(), kMaxExcerpt + 3);
  EXPECT_EQ(excerpt.substr(0, 7), "[7, 7, ");
}

}  // namespace
}  // namespace blockdraft
