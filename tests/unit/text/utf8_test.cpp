#include "text/utf8.h"

#include <random>

#include <gtest/gtest.h>

#include "text/byte_level.h"

namespace blockdraft {
namespace {

constexpr const char* kBad = "\xEF\xBF\xBD";

std::string replaced(std::string_view text) {
  std::string out;
  append_as_utf8(out, text);
  return out;
}

std::string utf8_of(uint32_t c) {
  std::string text;
  const auto add = [&](uint32_t byte) { text.push_back(static_cast<char>(byte)); };
  if (c < 0x80) {
    add(c);
    return text;
  }
  if (c >= 0x10000) {
    add(0xF0 | c >> 18);
    add(0x80 | (c >> 12 & 63));
  } else if (c >= 0x800) {
    add(0xE0 | c >> 12);
  }
  add(c >= 0x800 ? 0x80 | (c >> 6 & 63) : 0xC0 | c >> 6);
  add(0x80 | (c & 63));
  return text;
}

std::string repeat_bad(int count) {
  std::string out;
  for (int i = 0; i < count; ++i) out += kBad;
  return out;
}

TEST(Utf8, ReplacesMaximalSubparts) {
  // The examples of the Unicode Standard, tables 3-8 to 3-11.
  EXPECT_EQ(replaced("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41"), repeat_bad(8) + "A");
  EXPECT_EQ(replaced("\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41"), repeat_bad(8) + "A");
  EXPECT_EQ(replaced("\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42"), repeat_bad(5) + "A" + repeat_bad(2) + "B");
  EXPECT_EQ(replaced("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41"), repeat_bad(4) + "A");
}

TEST(Utf8, KeepsWhatIsValid) {
  const std::string text = "a\xC3\xA9\xE4\xB8\xAD\xF0\x9F\x99\x82\xF4\x8F\xBF\xBF\x7F";
  EXPECT_TRUE(is_utf8(text));
  EXPECT_EQ(replaced(text), text);
  EXPECT_TRUE(is_utf8(""));
}

TEST(Utf8, LeavesAnIncompleteEnd) {
  for (const std::string_view tail : {"\xC3", "\xE4\xB8", "\xF0\x9F\x99", "\xF0"}) {
    std::string out;
    EXPECT_EQ(append_complete_utf8(out, "ab" + std::string(tail)), 2u);
    EXPECT_EQ(out, "ab");
    EXPECT_EQ(replaced(tail), kBad);
    EXPECT_FALSE(is_utf8(tail));
  }
}

TEST(Utf8, EveryCodePointIsOneStepBothWays) {
  for (uint32_t c = 0; c < 0x110000; ++c) {
    if (c >= 0xD800 && c <= 0xDFFF) continue;
    const std::string text = utf8_of(c);
    const Utf8Step step = utf8_step(text, 0);
    ASSERT_EQ(step.kind, Utf8Kind::character) << c;
    ASSERT_EQ(step.code_point, c);
    ASSERT_EQ(step.length, text.size());
    ASSERT_EQ(utf8_step_back("x" + text, text.size() + 1).code_point, c);
  }
}

TEST(Utf8, ReplacedBytesAreAlwaysValidAndStable) {
  std::mt19937 random(7);
  const std::string pool = "aZ\x80\xBF\xC0\xC2\xE0\xA0\xED\x9F\xEF\xF0\x90\xF4\x8F\xF5\xFF";
  for (int i = 0; i < 20000; ++i) {
    std::string bytes(random() % 12, 0);
    for (char& c : bytes) c = random() % 4 == 0 ? static_cast<char>(random()) : pool[random() % pool.size()];
    const std::string text = replaced(bytes);
    ASSERT_TRUE(is_utf8(text));
    ASSERT_EQ(replaced(text), text);
    ASSERT_EQ(is_utf8(bytes), text == bytes);
  }
}

TEST(ByteLevel, SpellsEveryByteAsOnePrintableCharacter) {
  EXPECT_EQ(byte_spelling(' '), "\xC4\xA0");   // U+0120
  EXPECT_EQ(byte_spelling('\n'), "\xC4\x8A");  // U+010A
  EXPECT_EQ(byte_spelling(0x7F), "\xC4\xA1");
  EXPECT_EQ(byte_spelling(0xAD), "\xC5\x83");  // U+0143, the last
  EXPECT_EQ(byte_spelling('a'), "a");
  EXPECT_EQ(byte_spelling(0xE9), "\xC3\xA9");
  for (int byte = 0; byte < 256; ++byte) {
    std::string bytes = "<";
    ASSERT_TRUE(append_spelled_bytes(bytes, byte_spelling(static_cast<unsigned char>(byte))));
    ASSERT_EQ(bytes, std::string("<") + static_cast<char>(byte));
  }
}

TEST(ByteLevel, KnowsLiteralText) {
  std::string bytes = "before";
  EXPECT_FALSE(append_spelled_bytes(bytes, "ab c"));            // a space is not spelled as one
  EXPECT_FALSE(append_spelled_bytes(bytes, "ab\xEF\xBD\x9C"));  // U+FF5C
  EXPECT_EQ(bytes, "before");
}

}  // namespace
}  // namespace blockdraft
