#include "blockdraft/tokenizer.h"

#include <random>
#include <thread>

#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "support/temp_dir.h"
#include "text/utf8.h"
#include "unit/text/tiny_tokenizer.h"

namespace blockdraft {
namespace {

using Ids = std::vector<int32_t>;

Tokenizer demo() {
  auto tokenizer = Tokenizer::open(std::filesystem::path(BLOCKDRAFT_SOURCE_DIR) / "demo/pycode-14m");
  if (!tokenizer) throw std::runtime_error(tokenizer.error().message);
  return *std::move(tokenizer);
}

std::string random_text(std::mt19937& random) {
  const std::vector<std::string> pool = {"def ",
                                         "self",
                                         "\n    ",
                                         "  ",
                                         "'s",
                                         "'LL",
                                         "\u00E9",
                                         "e\u0301",
                                         "\u4E2D\u6587",
                                         "\U0001F642",
                                         "123",
                                         "<|im_start|>",
                                         "<|im_",
                                         "\r\n",
                                         "\t",
                                         "\u3000",
                                         "\u180E",
                                         "!!",
                                         "_x",
                                         "\xFF",
                                         "\xE4\xB8",
                                         "\xF0\x9F",
                                         std::string(1, '\0'),
                                         "return"};
  std::string text;
  const size_t count = random() % 24;
  for (size_t i = 0; i < count; ++i) {
    text += random() % 5 == 0 ? std::string(1, static_cast<char>(random())) : pool[random() % pool.size()];
  }
  return text;
}

TEST(Tokenizer, ErrorsNameTheFile) {
  const TempDir folder;
  expect_error(Tokenizer::open(folder.path()), Code::not_found, {"tokenizer.json"});
  write_file(folder / "tokenizer.json", "{\"model\": 3}");
  expect_error(Tokenizer::open(folder.path()), Code::corrupt_file,
               {(folder / "tokenizer.json").string(), "key 'model' is 3", "expected an object"});
}

TEST(Tokenizer, DecodeUndoesEncode) {
  const Tokenizer tokenizer = demo();
  std::mt19937 random(1);
  for (int i = 0; i < 5000; ++i) {
    const std::string text = random_text(random);
    std::string valid;
    append_as_utf8(valid, text);
    ASSERT_EQ(tokenizer.decode(tokenizer.encode(text, {.add_special_tokens = false}), false), valid);
    // Nothing is special here, so that nothing is skipped.
    ASSERT_EQ(tokenizer.decode(tokenizer.encode(text, {.parse_special_tokens = false})), valid);
  }
}

TEST(Tokenizer, SpecialTokens) {
  const Tokenizer tokenizer = demo();
  EXPECT_EQ(tokenizer.encode("<|im_start|>"), (Ids{0, 1}));
  EXPECT_EQ(tokenizer.encode("<|im_start|>", {.add_special_tokens = false}), (Ids{1}));
  EXPECT_GT(tokenizer.encode("<|im_start|>", {.parse_special_tokens = false}).size(), 2u);
  EXPECT_EQ(tokenizer.decode(Ids{0, 1}), "");
  EXPECT_EQ(tokenizer.decode(Ids{0, 1}, false), "<|endoftext|><|im_start|>");
  EXPECT_TRUE(tokenizer.is_special(2));
  EXPECT_FALSE(tokenizer.is_special(3));
  EXPECT_FALSE(tokenizer.is_special(-1));
  EXPECT_FALSE(tokenizer.is_special(100000));
}

TEST(Tokenizer, IdsWithoutTokenGiveNoText) {
  const Tokenizer tokenizer = demo();
  const Ids ids = tokenizer.encode("x = 1", {.add_special_tokens = false});
  Ids more = {-1, 4096, INT32_MAX, INT32_MIN};
  more.insert(more.end(), ids.begin(), ids.end());
  EXPECT_EQ(tokenizer.decode(more), "x = 1");
  EXPECT_EQ(tokenizer.token_bytes(-1), "");
  EXPECT_EQ(tokenizer.token_bytes(4096), "");
}

TEST(Tokenizer, IdOfUndoesTokenBytes) {
  const Tokenizer tokenizer = demo();
  for (int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
    ASSERT_EQ(tokenizer.id_of(tokenizer.token_bytes(id)), id);
  }
  EXPECT_EQ(tokenizer.id_of("<|endoftext|>"), 0);
  EXPECT_EQ(tokenizer.id_of("no such token"), std::nullopt);
  EXPECT_EQ(tokenizer.id_of(""), std::nullopt);
}

TEST(Tokenizer, FindsLiteralAndAddedTokens) {
  Json document = tiny_tokenizer_json();
  document["model"]["vocab"]["\uFF5Cx"] = 270;
  document["added_tokens"] = {added_token_json(275, "<new token>", {"special"})};
  const TempDir folder;
  write_file(folder / "tokenizer.json", document.dump());
  const auto tokenizer = Tokenizer::open(folder.path());
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.error().message;
  EXPECT_EQ(tokenizer->id_of("\uFF5Cx"), 270);
  EXPECT_EQ(tokenizer->id_of("<new token>"), 275);
  EXPECT_EQ(tokenizer->id_of(" a"), 259);
  EXPECT_EQ(tokenizer->vocab_size(), 276);
  EXPECT_EQ(tokenizer->decode(Ids{270, 272, 275}, false), "\uFF5Cx<new token>");
}

TEST(Tokenizer, InvalidBytesBecomeReplacementCharacters) {
  const Tokenizer tokenizer = demo();
  EXPECT_EQ(tokenizer.encode("a\xFF\xE4\xB8z"), tokenizer.encode("a\uFFFD\uFFFDz"));
}

TEST(Tokenizer, SeveralThreadsAtOnce) {
  const Tokenizer tokenizer = demo();
  std::mt19937 random(2);
  std::vector<std::string> texts;
  std::vector<Ids> expected;
  for (int i = 0; i < 300; ++i) {
    texts.push_back(random_text(random));
    expected.push_back(tokenizer.encode(texts.back()));
  }
  std::vector<std::thread> threads;
  std::vector<int> wrong(4, 0);
  for (size_t t = 0; t < wrong.size(); ++t) {
    threads.emplace_back([&, t] {
      const Tokenizer copy = tokenizer;
      for (size_t i = 0; i < texts.size(); ++i) wrong[t] += copy.encode(texts[i]) != expected[i] ? 1 : 0;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(4, 0));
}

TEST(Tokenizer, LongWordsAreNotQuadratic) {
  const Tokenizer tokenizer = demo();
  for (const std::string& text : {std::string(1000000, 'a'), std::string(1000000, ' '), std::string(1000000, '=')}) {
    EXPECT_EQ(tokenizer.decode(tokenizer.encode(text)), text);
  }
}

}  // namespace
}  // namespace blockdraft
