#include "text/nfc.h"

#include <chrono>

#include <gtest/gtest.h>
#include <utf8proc.h>

namespace blockdraft {
namespace {

std::string nfc(std::string_view text) {
  std::string storage;
  return std::string(to_nfc(text, storage));
}

TEST(Nfc, Composes) {
  EXPECT_EQ(nfc("Cafe\u0301"), "Caf\u00E9");
  EXPECT_EQ(nfc("a\u0301\u0301"), "\u00E1\u0301");
  EXPECT_EQ(nfc("\u1100\u1161\u11A8"), "\uAC01");    // Hangul jamo
  EXPECT_EQ(nfc("\uAC00\u11A8"), "\uAC01");          // a syllable and a jamo
  EXPECT_EQ(nfc("\u304B\u3099"), "\u304C");          // kana and a voiced mark
  EXPECT_EQ(nfc("q\u0307\u0323"), "q\u0323\u0307");  // only reordered
  EXPECT_EQ(nfc("\u1E9B\u0323"), "\u1E9B\u0323");    // a mark that composes with nothing here
}

TEST(Nfc, ReplacesWhatIsNeverComposed) {
  EXPECT_EQ(nfc("\u212B"), "\u00C5");        // singleton
  EXPECT_EQ(nfc("\u0958"), "\u0915\u093C");  // composition exclusion
  EXPECT_EQ(nfc("\U0002F800"), "\u4E3D");    // beyond the table of inert characters
  EXPECT_EQ(nfc("\U0001D15E"), "\U0001D157\U0001D165");
}

TEST(Nfc, ReturnsTheTextItselfAtAGlance) {
  std::string storage;
  for (const std::string_view text : {"", "plain ASCII", "\u00E9t\u00E9", "\u4E2D\u6587", "\u304C\u3093",
                                      "\uD55C\uAD6D", "\u0439\u0451", "\U0001F642", "\u1EC7"}) {
    EXPECT_EQ(to_nfc(text, storage).data(), text.data()) << text;
  }
}

// The glance must never disagree with the full way: all pairs of a plain letter, each character, and a mark after it.
TEST(Nfc, AgreesWithTheLibraryOnEveryCharacter) {
  for (int32_t c = 0x80; c < 0x30000; ++c) {
    if (c >= 0xD800 && c <= 0xDFFF) continue;
    std::string text = "a";
    utf8proc_uint8_t bytes[4];
    text.append(reinterpret_cast<char*>(bytes), static_cast<size_t>(utf8proc_encode_char(c, bytes)));
    text += "x";
    utf8proc_uint8_t* expected = nullptr;
    const auto size =
        utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()), static_cast<utf8proc_ssize_t>(text.size()),
                     &expected, static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
    ASSERT_GE(size, 0);
    const std::string expected_text(reinterpret_cast<char*>(expected), static_cast<size_t>(size));
    std::free(expected);
    ASSERT_EQ(nfc(text), expected_text) << c;
    ASSERT_EQ(nfc(expected_text), expected_text) << c;
  }
}

// A sort that compares neighbours only would need some 10^10 steps for this.
TEST(Nfc, LongRunsOfMarksAreNotQuadratic) {
  std::string text = "a";
  std::string sorted = "a";
  for (int i = 0; i < 100000; ++i) text += "\u0301\u0316";
  for (int i = 0; i < 100000; ++i) sorted += "\u0316";
  const std::string result = nfc(text);
  EXPECT_EQ(result.substr(0, 200), "\u00E1" + sorted.substr(1, 198));
  EXPECT_EQ(result.size(), text.size() - 1);  // one acute accent went into the letter
}

}  // namespace
}  // namespace blockdraft
