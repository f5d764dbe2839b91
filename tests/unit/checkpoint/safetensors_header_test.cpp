// The header as an attack surface: every way to be wrong is an error that names the file, the tensor and the numbers.
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "checkpoint/safetensors.h"
#include "support/expect_error.h"
#include "support/safetensors_writer.h"

namespace blockdraft {
namespace {

constexpr const char* kOrigin = "weights.safetensors";

Result<TensorEntries> parse(const std::string& file) {
  return parse_safetensors_header(std::as_bytes(std::span(file)), file.size(), kOrigin);
}

// A file with this header and so many bytes of data.
Result<TensorEntries> parse_header(const std::string& header, size_t data_bytes = 0) {
  return parse(safetensors_from_header(header, std::string(data_bytes, '\0')));
}

std::string with_length(uint64_t length, const std::string& rest) {
  std::string bytes(8, '\0');
  for (size_t i = 0; i < 8; ++i) bytes[i] = static_cast<char>((length >> (8 * i)) & 0xffu);
  return bytes + rest;
}

// One F32 tensor "w" with the given parts.
std::string entry(const std::string& shape, const std::string& offsets, const std::string& dtype = "\"F32\"") {
  return fmt::format(R"({{"w":{{"dtype":{},"shape":{},"data_offsets":{}}}}})", dtype, shape, offsets);
}

TEST(SafetensorsHeader, ReadsNamesTypesShapesAndRanges) {
  const auto entries =
      parse_header(R"({"__metadata__":{"format":"pt"},"b":{"dtype":"BF16","shape":[2,3],"data_offsets":[4,16]},)"
                   R"("a":{"dtype":"F32","shape":[],"data_offsets":[0,4]}}   )",
                   16);
  ASSERT_TRUE(entries.ok()) << entries.error().message;
  ASSERT_EQ(entries->size(), 2u);
  EXPECT_EQ(entries->at("a").dtype, DType::f32);
  EXPECT_TRUE(entries->at("a").shape.empty());
  EXPECT_EQ(entries->at("a").end, 4u);
  EXPECT_EQ(entries->at("b").dtype, DType::bf16);
  EXPECT_EQ(entries->at("b").shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(entries->at("b").begin, 4u);
  EXPECT_EQ(entries->at("b").end, 16u);
}

TEST(SafetensorsHeader, ReadsEveryElementType) {
  const std::vector<std::pair<const char*, size_t>> types = {{"F32", 4}, {"F16", 2}, {"BF16", 2}, {"F8_E4M3", 1},
                                                             {"F64", 8}, {"I64", 8}, {"I32", 4},  {"I16", 2},
                                                             {"I8", 1},  {"U8", 1},  {"BOOL", 1}};
  for (const auto& [name, size] : types) {
    const auto entries =
        parse_header(entry("[3]", fmt::format("[0,{}]", 3 * size), fmt::format("\"{}\"", name)), 3 * size);
    ASSERT_TRUE(entries.ok()) << entries.error().message;
    EXPECT_STREQ(name_of(entries->at("w").dtype), name);
  }
}

TEST(SafetensorsHeader, TensorsWithoutElementsAreLegal) {
  const auto entries = parse_header(
      R"({"a":{"dtype":"F32","shape":[0,7],"data_offsets":[0,0]},"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
      R"("c":{"dtype":"F32","shape":[3,0],"data_offsets":[4,4]}})",
      4);
  ASSERT_TRUE(entries.ok()) << entries.error().message;
  EXPECT_EQ(entries->size(), 3u);
}

TEST(SafetensorsHeader, NoTensorsAtAllIsLegal) { EXPECT_TRUE(parse_header("{}").ok()); }

TEST(SafetensorsHeader, EightDimensionsAreReadNineAreNot) {
  EXPECT_TRUE(parse_header(entry("[1,1,1,1,1,1,1,1]", "[0,4]"), 4).ok());
  expect_error(parse_header(entry("[1,1,1,1,1,1,1,1,1]", "[0,4]"), 4), Code::corrupt_file,
               {kOrigin, "'w'", "9 dimensions", "at most 8"});
}

TEST(SafetensorsHeader, RefusesAFileShorterThanTheLength) {
  expect_error(parse(""), Code::corrupt_file, {kOrigin, "0 bytes", "at least the 8"});
  expect_error(parse("1234567"), Code::corrupt_file, {kOrigin, "7 bytes", "at least the 8"});
}

TEST(SafetensorsHeader, RefusesALengthBeyondTheFile) {
  expect_error(parse(with_length(3, "{}")), Code::corrupt_file, {kOrigin, "length is 3", "only 2 bytes"});
  expect_error(parse(with_length(2, "")), Code::corrupt_file, {kOrigin, "length is 2", "only 0 bytes"});
}

TEST(SafetensorsHeader, RefusesALengthBeyondTheLimitWhateverTheFileClaims) {
  for (const uint64_t length : {uint64_t{kMaxHeaderBytes} + 1, UINT64_MAX, UINT64_MAX - 7, uint64_t{1} << 63}) {
    const std::string file = with_length(length, "{}");
    expect_error(parse_safetensors_header(std::as_bytes(std::span(file)), SIZE_MAX, kOrigin), Code::corrupt_file,
                 {kOrigin, std::to_string(length), std::to_string(kMaxHeaderBytes)});
  }
}

TEST(SafetensorsHeader, NeverReadsBeyondTheBytesGiven) {
  const std::string file = with_length(1000, "{}");
  expect_error(parse_safetensors_header(std::as_bytes(std::span(file)), 1 << 20, kOrigin), Code::corrupt_file,
               {kOrigin, "length is 1000", "only 2 bytes"});
}

TEST(SafetensorsHeader, RefusesWhatDoesNotBeginWithABrace) {
  expect_error(parse(with_length(0, "")), Code::corrupt_file, {kOrigin, "'{'"});
  expect_error(parse_header("[]"), Code::corrupt_file, {kOrigin, "'{'"});
  expect_error(parse_header(" {}"), Code::corrupt_file, {kOrigin, "'{'"});
}

TEST(SafetensorsHeader, RefusesBadJson) {
  expect_error(parse_header(R"({"a":)"), Code::corrupt_file, {kOrigin, "not valid JSON at byte"});
  expect_error(parse_header("{} {}"), Code::corrupt_file, {kOrigin, "not valid JSON at byte"});
  expect_error(parse_header(std::string("{}\0\0", 4)), Code::corrupt_file, {kOrigin, "byte 2", "NUL"});
  expect_error(parse_header("{\"\xff\":1}"), Code::corrupt_file, {kOrigin, "UTF-8"});
}

TEST(SafetensorsHeader, RefusesJsonNestedWithoutEnd) {
  std::string deep = "{\"w\":";
  deep.append(1 << 20, '[');
  expect_error(parse_header(deep), Code::corrupt_file, {kOrigin, "nested deeper than 64"});
  std::string objects;
  for (int i = 0; i < 200'000; ++i) objects += "{\"a\":";
  expect_error(parse_header(objects), Code::corrupt_file, {kOrigin, "nested deeper than 64"});
}

TEST(SafetensorsHeader, RefusesDuplicateTensors) {
  expect_error(parse_header(R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                            R"("w":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
                            8),
               Code::corrupt_file, {kOrigin, "'w'", "twice"});
}

TEST(SafetensorsHeader, RefusesDuplicateKeysOfATensor) {
  expect_error(parse_header(R"({"w":{"dtype":"F32","shape":[1],"shape":[1],"data_offsets":[0,4]}})", 4),
               Code::corrupt_file, {kOrigin, "'shape'", "twice"});
}

TEST(SafetensorsHeader, RefusesMetadataThatIsNotStrings) {
  expect_error(parse_header(R"({"__metadata__":[]})"), Code::corrupt_file,
               {kOrigin, "__metadata__ is a list", "an object of strings"});
  expect_error(parse_header(R"({"__metadata__":{"epoch":3}})"), Code::corrupt_file,
               {kOrigin, "__metadata__", "'epoch'", "an integer", "a string"});
}

TEST(SafetensorsHeader, RefusesMissingAndUnknownKeys) {
  expect_error(parse_header(R"({"w":7})"), Code::corrupt_file, {kOrigin, "'w'", "an integer", "an object"});
  expect_error(parse_header(R"({"w":{"shape":[1],"data_offsets":[0,4]}})", 4), Code::corrupt_file,
               {kOrigin, "'w'", "'dtype'"});
  expect_error(parse_header(R"({"w":{"dtype":"F32","data_offsets":[0,4]}})", 4), Code::corrupt_file,
               {kOrigin, "'w'", "'shape'"});
  expect_error(parse_header(R"({"w":{"dtype":"F32","shape":[1]}})", 4), Code::corrupt_file,
               {kOrigin, "'w'", "'data_offsets'"});
  expect_error(parse_header(R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"strides":[1]}})", 4),
               Code::corrupt_file, {kOrigin, "'w'", "unknown key 'strides'"});
}

TEST(SafetensorsHeader, RefusesUnknownElementTypes) {
  expect_error(parse_header(entry("[1]", "[0,4]", "7"), 4), Code::corrupt_file,
               {kOrigin, "'w'", "an integer as dtype"});
  for (const char* name : {"F8_E5M2", "U64", "f32", "", "F32 "}) {
    expect_error(parse_header(entry("[1]", "[0,4]", fmt::format("\"{}\"", name)), 4), Code::unsupported,
                 {kOrigin, "'w'", fmt::format("dtype '{}'", name), "BF16"});
  }
}

TEST(SafetensorsHeader, RefusesExtentsThatAreNotCounts) {
  expect_error(parse_header(entry("4", "[0,4]"), 4), Code::corrupt_file, {kOrigin, "'w'", "an integer as shape"});
  for (const char* extent : {"-1", "1.0", "1e3", "true", "null", "\"1\"", "[1]", "9223372036854775808",
                             "18446744073709551615", "18446744073709551616", "-0"}) {
    expect_error(parse_header(entry(fmt::format("[{}]", extent), "[0,4]"), 4), Code::corrupt_file,
                 {kOrigin, "'w'", "in shape", "from 0 to 9223372036854775807"});
  }
}

TEST(SafetensorsHeader, RefusesOffsetsThatAreNotTwoCounts) {
  for (const char* offsets : {"0", "[]", "[0]", "[0,4,8]", "{}", "null"}) {
    expect_error(parse_header(entry("[1]", offsets), 4), Code::corrupt_file,
                 {kOrigin, "'w'", "data_offsets", "a list of two integers"});
  }
  for (const char* offsets : {"[-4,0]", "[0,4.0]", "[false,4]", "[0,18446744073709551615]", "[0,1e1]"}) {
    expect_error(parse_header(entry("[1]", offsets), 4), Code::corrupt_file,
                 {kOrigin, "'w'", "in data_offsets", "an integer from 0 to"});
  }
}

TEST(SafetensorsHeader, RefusesShapesWhoseProductOverflows) {
  // 2^32 * 2^32 wraps to 0 in 64 bits, 2^62 * 4 bytes too, and an extent of 0 does not hide an overflow.
  for (const char* shape : {"[4294967296,4294967296]", "[4611686018427387904]", "[3037000500,3037000500]",
                            "[9223372036854775807,9223372036854775807,9223372036854775807]",
                            "[4611686018427387904,4611686018427387904,0]", "[0,4611686018427387904,8]"}) {
    expect_error(parse_header(entry(shape, "[0,0]")), Code::corrupt_file, {kOrigin, "'w'", "overflows", "F32"});
  }
}

TEST(SafetensorsHeader, RefusesOffsetsOutOfOrder) {
  expect_error(parse_header(entry("[1]", "[4,0]"), 4), Code::corrupt_file,
               {kOrigin, "'w'", "[4, 0]", "before the beginning"});
}

TEST(SafetensorsHeader, RefusesRangesThatDoNotMatchTheShape) {
  expect_error(parse_header(entry("[3]", "[0,8]"), 8), Code::corrupt_file,
               {kOrigin, "'w'", "8 bytes", "[0, 8]", "expected 12", "[3]", "F32"});
  expect_error(parse_header(entry("[0]", "[0,4]"), 4), Code::corrupt_file, {kOrigin, "'w'", "4 bytes", "expected 0"});
  expect_error(parse_header(entry("[]", "[0,0]")), Code::corrupt_file, {kOrigin, "'w'", "0 bytes", "expected 4"});
}

TEST(SafetensorsHeader, RefusesOffsetsBeyondTheFile) {
  expect_error(parse_header(entry("[2]", "[0,8]"), 7), Code::corrupt_file,
               {kOrigin, "'w'", "ends at byte 8", "the file has 7"});
  expect_error(parse_header(entry("[2]", "[9223372036854775799,9223372036854775807]"), 8), Code::corrupt_file,
               {kOrigin, "'w'", "ends at byte 9223372036854775807", "the file has 8"});
}

TEST(SafetensorsHeader, RefusesOverlaps) {
  expect_error(parse_header(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
                            R"("b":{"dtype":"U8","shape":[4],"data_offsets":[3,7]}})",
                            7),
               Code::corrupt_file, {kOrigin, "'b'", "begins at byte 3", "overlaps tensor 'a'", "ends at 4"});
  // The same range twice: two names for the same bytes.
  expect_error(parse_header(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
                            R"("b":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})",
                            4),
               Code::corrupt_file, {kOrigin, "overlaps"});
  // A tensor without elements inside another one.
  expect_error(parse_header(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
                            R"("b":{"dtype":"U8","shape":[0],"data_offsets":[2,2]}})",
                            4),
               Code::corrupt_file, {kOrigin, "'b'", "overlaps tensor 'a'"});
}

TEST(SafetensorsHeader, RefusesGaps) {
  expect_error(parse_header(entry("[1]", "[4,8]"), 8), Code::corrupt_file,
               {kOrigin, "'w'", "begins at byte 4", "expected 0"});
  expect_error(parse_header(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
                            R"("b":{"dtype":"U8","shape":[4],"data_offsets":[5,9]}})",
                            9),
               Code::corrupt_file, {kOrigin, "'b'", "begins at byte 5", "expected 4"});
}

// A file that may end early is held to everything else.
TEST(SafetensorsHeader, WithoutDataTheRangesMustTileAllTheSame) {
  const auto without_data = [](const std::string& header) {
    const std::string file = safetensors_from_header(header);
    return parse_safetensors_header(std::as_bytes(std::span(file)), file.size(), kOrigin, TensorData::optional);
  };
  const auto entries = without_data(entry("[2]", "[0,8]"));
  ASSERT_TRUE(entries.ok()) << entries.error().message;
  EXPECT_EQ(entries->at("w").end, 8u);
  expect_error(without_data(entry("[1]", "[4,8]")), Code::corrupt_file, {kOrigin, "begins at byte 4", "expected 0"});
  expect_error(without_data(entry("[3]", "[0,8]")), Code::corrupt_file, {kOrigin, "'w'", "expected 12"});
  expect_error(without_data(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
                            R"("b":{"dtype":"U8","shape":[4],"data_offsets":[3,7]}})"),
               Code::corrupt_file, {kOrigin, "'b'", "overlaps tensor 'a'"});
}

TEST(SafetensorsHeader, RefusesBytesAfterTheLastTensor) {
  expect_error(parse_header(entry("[1]", "[0,4]"), 5), Code::corrupt_file,
               {kOrigin, "end at byte 4", "the file has 5"});
  expect_error(parse_header("{}", 1), Code::corrupt_file, {kOrigin, "end at byte 0", "the file has 1"});
}

TEST(SafetensorsHeader, MessagesStayOneShortLineWhateverTheNameIs) {
  const std::string name = fmt::format("x\\n{}", std::string(100'000, 'y'));
  const auto result =
      parse_header(fmt::format(R"({{"{}":{{"dtype":"F32","shape":[1],"data_offsets":[0,8]}}}})", name), 8);
  expect_error(result, Code::corrupt_file, {kOrigin, "'x yyy", "..."});
  EXPECT_LT(result.error().message.size(), 500u);
}

TEST(SafetensorsHeader, ReadsTenThousandTensors) {
  std::vector<TensorToWrite> tensors;
  for (int i = 0; i < 10'000; ++i) tensors.push_back({fmt::format("model.layers.{}", i), "U8", {2, 1}, "ab"});
  const auto entries = parse(safetensors_from(tensors));
  ASSERT_TRUE(entries.ok()) << entries.error().message;
  EXPECT_EQ(entries->size(), 10'000u);
  EXPECT_EQ(entries->at("model.layers.9999").begin, 19'998u);
}

}  // namespace
}  // namespace blockdraft
