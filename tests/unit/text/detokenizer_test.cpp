// Streaming gives what decode gives, and never part of a character.
#include <random>

#include <gtest/gtest.h>

#include "blockdraft/tokenizer.h"
#include "text/utf8.h"

namespace blockdraft {
namespace {

Tokenizer demo() {
  auto tokenizer = Tokenizer::open(std::filesystem::path(BLOCKDRAFT_SOURCE_DIR) / "demo/pycode-14m");
  if (!tokenizer) throw std::runtime_error(tokenizer.error().message);
  return *std::move(tokenizer);
}

std::string streamed(const Tokenizer& tokenizer, const std::vector<int32_t>& ids, bool skip_special) {
  Detokenizer detokenizer(tokenizer, skip_special);
  std::string text;
  for (const int32_t id : ids) {
    const std::string piece = detokenizer.push(id);
    EXPECT_TRUE(is_utf8(piece));
    text += piece;
  }
  const std::string last = detokenizer.finish();
  EXPECT_TRUE(is_utf8(last));
  EXPECT_EQ(detokenizer.finish(), "");
  return text + last;
}

TEST(Detokenizer, EqualsDecodeForRandomIds) {
  const Tokenizer tokenizer = demo();
  std::mt19937 random(21);
  for (int round = 0; round < 4000; ++round) {
    std::vector<int32_t> ids(random() % 30);
    // Half of them single bytes, which are parts of characters more often than not; some special, some no token at all.
    for (int32_t& id : ids) {
      id = random() % 2 == 0 ? static_cast<int32_t>(random() % 259) : static_cast<int32_t>(random() % 4200) - 10;
    }
    for (const bool skip_special : {true, false}) {
      ASSERT_EQ(streamed(tokenizer, ids, skip_special), tokenizer.decode(ids, skip_special));
    }
  }
}

TEST(Detokenizer, WaitsForTheWholeCharacter) {
  const Tokenizer tokenizer = demo();
  const auto byte = [&](unsigned char value) {
    const char c = static_cast<char>(value);
    return tokenizer.id_of(std::string_view(&c, 1)).value();
  };
  Detokenizer detokenizer(tokenizer);
  EXPECT_EQ(detokenizer.push(byte('a')), "a");
  EXPECT_EQ(detokenizer.push(byte(0xF0)), "");
  EXPECT_EQ(detokenizer.push(byte(0x9F)), "");
  EXPECT_EQ(detokenizer.push(1), "");  // a special token in between is not there
  EXPECT_EQ(detokenizer.push(byte(0x99)), "");
  EXPECT_EQ(detokenizer.push(byte(0x82)), "\U0001F642");
  EXPECT_EQ(detokenizer.push(byte(0xE4)), "");
  EXPECT_EQ(detokenizer.push(byte('b')), "\uFFFDb");  // it can no longer become one
  EXPECT_EQ(detokenizer.push(byte(0x80)), "\uFFFD");
  EXPECT_EQ(detokenizer.push(byte(0xE4)), "");
  EXPECT_EQ(detokenizer.push(byte(0xB8)), "");
  EXPECT_EQ(detokenizer.finish(), "\uFFFD");
  EXPECT_EQ(detokenizer.push(byte('c')), "c");
}

}  // namespace
}  // namespace blockdraft
