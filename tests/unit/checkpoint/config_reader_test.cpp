#include "checkpoint/config_reader.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "support/expect_error.h"
#include "support/temp_dir.h"

namespace blockdraft {
namespace {

constexpr const char* kOrigin = "drafter/config.json";

class Config : public ::testing::Test {
 protected:
  // Reads the text as one object; the reader borrows it, so that it stays here.
  ConfigReader read(std::string_view text) {
    json_ = parse_json(text, kOrigin).value();
    return ConfigReader(json_, kOrigin);
  }
  Json json_;
};

TEST_F(Config, GivesTypedValues) {
  const ConfigReader config = read(
      R"({"size":8,"eps":1e-6,"theta":10000,"bias":false,"act":"silu","ids":[5,1,-3],"names":["a","b"],"low":-7})");
  EXPECT_EQ(config.integer("size").value(), 8);
  EXPECT_EQ(config.integer("low").value(), -7);
  EXPECT_EQ(config.number("eps").value(), 1e-6);
  EXPECT_EQ(config.number("theta").value(), 10000.0);
  EXPECT_EQ(config.string("act").value(), "silu");
  EXPECT_EQ(config.optional_integer("size").value(), 8);
  EXPECT_EQ(config.optional_number("theta").value(), 10000.0);
  EXPECT_EQ(config.optional_boolean("bias").value(), false);
  EXPECT_EQ(config.optional_string("act").value(), "silu");
  EXPECT_EQ(config.optional_integers("ids").value(), (std::vector<int64_t>{5, 1, -3}));
  EXPECT_EQ(config.optional_strings("names").value(), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(config.origin(), kOrigin);
}

TEST_F(Config, NullCountsAsAbsent) {
  const ConfigReader config = read(R"({"null":null})");
  for (const char* key : {"null", "absent"}) {
    EXPECT_FALSE(config.has(key));
    EXPECT_EQ(config.find(key).value, nullptr);
    EXPECT_EQ(config.find(key).name, key);
    EXPECT_EQ(config.optional_integer(key).value(), std::nullopt);
    EXPECT_EQ(config.optional_number(key).value(), std::nullopt);
    EXPECT_EQ(config.optional_boolean(key).value(), std::nullopt);
    EXPECT_EQ(config.optional_string(key).value(), std::nullopt);
    EXPECT_EQ(config.optional_integers(key).value(), std::nullopt);
    EXPECT_EQ(config.optional_strings(key).value(), std::nullopt);
    EXPECT_FALSE(config.optional_object(key).value().has_value());
    expect_error(config.integer(key, kExtent), Code::not_found,
                 {kOrigin, fmt::format("'{}' is missing", key), "an integer from 1 to 16777216"});
    expect_error(config.number(key), Code::not_found, {kOrigin, "is missing", "a number"});
    expect_error(config.string(key), Code::not_found, {kOrigin, "is missing", "a string"});
  }
}

TEST_F(Config, IntegersAreIntegersOnly) {
  for (const char* value :
       {"8.0", "1e1", "true", "\"8\"", "[8]", "9223372036854775808", "18446744073709551615", "-9223372036854775809"}) {
    const ConfigReader config = read(fmt::format(R"({{"size":{}}})", value));
    expect_error(config.integer("size"), Code::corrupt_file, {kOrigin, "key 'size' is", "expected an integer"});
    expect_error(config.optional_integer("size"), Code::corrupt_file, {kOrigin, "key 'size' is"});
  }
  EXPECT_EQ(read(R"({"size":9223372036854775807})").integer("size").value(), INT64_MAX);
  EXPECT_EQ(read(R"({"size":-9223372036854775808})").integer("size").value(), INT64_MIN);
}

TEST_F(Config, MessagesNameTheValueFound) {
  const ConfigReader config = read(R"({"size":8.5,"flag":true,"name":"silu","object":{"a":1},"list":[1,"x",{}]})");
  expect_error(config.integer("size"), Code::corrupt_file, {"key 'size' is 8.5, expected an integer"});
  expect_error(config.integer("flag"), Code::corrupt_file, {"key 'flag' is true, expected an integer"});
  expect_error(config.number("name"), Code::corrupt_file, {"key 'name' is \"silu\", expected a number"});
  expect_error(config.string("object"), Code::corrupt_file, {"key 'object' is an object, expected a string"});
  expect_error(config.string("list"), Code::corrupt_file, {"key 'list' is [1, \"x\", an object], expected a string"});
}

TEST_F(Config, RangesAreInclusive) {
  const ConfigReader config = read(R"({"zero":0,"one":1,"top":16777216,"over":16777217,"big":18446744073709551615})");
  EXPECT_TRUE(config.integer("one", kExtent).ok());
  EXPECT_TRUE(config.integer("top", kExtent).ok());
  expect_error(config.integer("zero", kExtent), Code::corrupt_file,
               {kOrigin, "'zero' is 0", "an integer from 1 to 16777216"});
  expect_error(config.integer("over", kExtent), Code::corrupt_file, {"'over' is 16777217"});
  expect_error(config.integer("big", {.min = 0}), Code::corrupt_file,
               {"'big' is 18446744073709551615", "an integer of at least 0"});
  expect_error(config.integer("one", {.max = 0}), Code::corrupt_file, {"'one' is 1", "an integer of at most 0"});
}

TEST_F(Config, NumbersAreNotBooleansOrStrings) {
  const ConfigReader config = read(R"({"flag":true,"text":"1.5"})");
  expect_error(config.number("flag"), Code::corrupt_file, {"'flag' is true", "a number"});
  expect_error(config.optional_number("text"), Code::corrupt_file, {"'text' is \"1.5\"", "a number"});
}

TEST_F(Config, NumbersAreFinite) {
  json_ = Json{{"theta", std::numeric_limits<double>::infinity()}, {"eps", std::numeric_limits<double>::quiet_NaN()}};
  const ConfigReader config(json_, kOrigin);
  expect_error(config.number("theta"), Code::corrupt_file, {kOrigin, "'theta'", "a finite number"});
  expect_error(config.number("eps"), Code::corrupt_file, {kOrigin, "'eps'", "a finite number"});
}

TEST_F(Config, BooleansAndStringsAreNotConverted) {
  const ConfigReader config = read(R"({"one":1,"text":"true"})");
  expect_error(config.optional_boolean("one"), Code::corrupt_file, {"'one' is 1", "true or false"});
  expect_error(config.optional_boolean("text"), Code::corrupt_file, {"'text' is \"true\"", "true or false"});
  expect_error(config.optional_string("one"), Code::corrupt_file, {"'one' is 1", "a string"});
}

TEST_F(Config, ListsNameTheElement) {
  const ConfigReader config = read(R"({"ids":[1,2.5,3],"low":[4,-1],"names":["a",7],"scalar":3,"none":[]})");
  expect_error(config.optional_integers("ids"), Code::corrupt_file, {kOrigin, "'ids[1]' is 2.5", "an integer"});
  expect_error(config.optional_integers("low", {.min = 0}), Code::corrupt_file,
               {kOrigin, "'low[1]' is -1", "an integer of at least 0"});
  expect_error(config.optional_strings("names"), Code::corrupt_file, {kOrigin, "'names[1]' is 7", "a string"});
  expect_error(config.optional_integers("scalar"), Code::corrupt_file, {"'scalar' is 3", "a list of integers"});
  expect_error(config.optional_strings("scalar"), Code::corrupt_file, {"'scalar' is 3", "a list of strings"});
  EXPECT_TRUE(config.optional_integers("none").value()->empty());
}

TEST_F(Config, NestedObjectsPutTheirKeyBefore) {
  const ConfigReader config = read(R"({"dflash_config":{"block_size":0,"deep":{"x":"y"}},"flat":3})");
  const auto nested = config.optional_object("dflash_config");
  ASSERT_TRUE(nested.ok() && nested->has_value());
  EXPECT_EQ((*nested)->find("block_size").name, "dflash_config.block_size");
  expect_error((*nested)->integer("block_size", {.min = 1}), Code::corrupt_file,
               {kOrigin, "key 'dflash_config.block_size' is 0, expected an integer of at least 1"});
  expect_error((*nested)->integer("mask_token_id"), Code::not_found, {"'dflash_config.mask_token_id' is missing"});
  const auto deep = (*nested)->optional_object("deep");
  ASSERT_TRUE(deep.ok() && deep->has_value());
  expect_error((*deep)->number("x"), Code::corrupt_file, {"'dflash_config.deep.x' is \"y\""});
  expect_error(config.optional_object("flat"), Code::corrupt_file, {kOrigin, "'flat' is 3", "an object"});
}

TEST_F(Config, ValuesFoundElsewhereConvertTheSameWay) {
  const ConfigReader config = read(R"({"a":{"n":3,"x":2,"b":true,"s":"t","l":[1],"m":["u"]}})");
  const ConfigReader inner = *config.optional_object("a").value();
  EXPECT_EQ(integer_from(config, inner.find("n")).value(), 3);
  EXPECT_EQ(number_from(config, inner.find("x")).value(), 2.0);
  EXPECT_EQ(boolean_from(config, inner.find("b")).value(), true);
  EXPECT_EQ(string_from(config, inner.find("s")).value(), "t");
  EXPECT_EQ(integers_from(config, inner.find("l")).value(), std::vector<int64_t>{1});
  EXPECT_EQ(strings_from(config, inner.find("m")).value(), std::vector<std::string>{"u"});
  expect_error(integer_from(config, inner.find("s")), Code::corrupt_file, {kOrigin, "'a.s' is \"t\"", "an integer"});
}

TEST_F(Config, KeysInMessagesStayOneLine) {
  const ConfigReader config = read(R"({"a\nb":{"x\u0001":1}})");
  const auto nested = config.optional_object("a\nb");
  ASSERT_TRUE(nested.ok() && nested->has_value());
  expect_error((*nested)->integer("size"), Code::not_found, {"'a b.size' is missing"});
  expect_error((*nested)->string("x\x01"), Code::corrupt_file, {"'a b.x ' is 1"});
}

TEST_F(Config, LongValuesAreCut) {
  const std::string text = fmt::format(R"({{"name":"{}"}})", std::string(5000, 'x'));
  const auto result = read(text).integer("name");
  expect_error(result, Code::corrupt_file, {"'name' is \"xxx", "...", "expected an integer"});
  EXPECT_LT(result.error().message.size(), 400u);
}

TEST(ReadConfigJson, ReadsTheObject) {
  const TempDir folder;
  write_file(folder / "config.json", R"({"hidden_size": 64})");
  const auto config = read_config_json(folder.path());
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(config->at("hidden_size"), 64);
}

TEST(ReadConfigJson, RefusalsNameTheFile) {
  const TempDir folder;
  const std::string path = (folder / "config.json").string();
  expect_error(read_config_json(folder.path()), Code::not_found, {path, "No such file"});
  write_file(folder / "config.json", "");
  expect_error(read_config_json(folder.path()), Code::corrupt_file, {path, "empty"});
  write_file(folder / "config.json", "[1]");
  expect_error(read_config_json(folder.path()), Code::corrupt_file, {path, "found a list", "expected an object"});
  write_file(folder / "config.json", R"({"a":1,"a":2})");
  expect_error(read_config_json(folder.path()), Code::corrupt_file, {path, "'a'", "twice"});
  write_file(folder / "config.json", R"({"a":NaN})");
  expect_error(read_config_json(folder.path()), Code::corrupt_file, {path, "not valid JSON at byte"});
  std::filesystem::remove(folder / "config.json");
  std::filesystem::create_directory(folder / "config.json");
  expect_error(read_config_json(folder.path()), Code::io_error, {path, "not a regular file"});
}

TEST(ReadJsonFile, RefusesAbsurdSizesWithoutReadingThem) {
  const TempDir folder;
  write_file(folder / "big.json", "{}");
  std::filesystem::resize_file(folder / "big.json", (size_t{256} << 20) + 1);
  expect_error(read_json_file(folder / "big.json"), Code::corrupt_file, {"big.json", "268435457 bytes", "at most"});
}

}  // namespace
}  // namespace blockdraft
