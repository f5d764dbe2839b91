#include "api/text_stream.h"

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace blockdraft {
namespace {

const Tokenizer& demo_tokenizer() {
  static const Tokenizer tokenizer = Tokenizer::open(BLOCKDRAFT_SOURCE_DIR "/demo/pycode-14m").value();
  return tokenizer;
}

struct Streamed {
  std::string joined;
  std::string text;
  size_t num_pushed = 0;
  bool at_stop_text = false;
};

Streamed stream(const std::string& text, const std::vector<std::string>& stop) {
  Streamed result;
  TextStream stream(demo_tokenizer(), stop, [&](std::string_view piece) {
    result.joined += piece;
    return true;
  });
  for (const int32_t id : demo_tokenizer().encode(text, {.add_special_tokens = false})) {
    ++result.num_pushed;
    if (!stream.push(id)) break;
  }
  stream.finish();
  result.text = stream.text();
  result.at_stop_text = stream.at_stop_text();
  return result;
}

TEST(TextStream, HandsOutEverythingWithoutStopTexts) {
  const Streamed result = stream("def f(x):\n    return \"日本\"\n", {});
  EXPECT_EQ(result.text, "def f(x):\n    return \"日本\"\n");
  EXPECT_EQ(result.joined, result.text);
  EXPECT_FALSE(result.at_stop_text);
}

TEST(TextStream, EndsBeforeTheFirstStopText) {
  const Streamed result = stream("alpha beta gamma delta", {"delta", "gamma", "zeta"});
  EXPECT_EQ(result.text, "alpha beta ");
  EXPECT_EQ(result.joined, result.text);
  EXPECT_TRUE(result.at_stop_text);
}

TEST(TextStream, FindsStopTextsThatCrossTokens) {
  const Streamed result = stream("x = 1\n\n\n\ny = 2", {"\n\n\n"});
  EXPECT_EQ(result.text, "x = 1");
  EXPECT_TRUE(result.at_stop_text);
}

TEST(TextStream, HandsOutWhatOnlyLookedLikeAStopText) {
  const Streamed result = stream("return retur", {"returns"});
  EXPECT_EQ(result.text, "return retur");
  EXPECT_EQ(result.joined, result.text);
  EXPECT_FALSE(result.at_stop_text);
}

TEST(TextStream, NeverHandsOutTheBeginningOfAStopText) {
  std::string joined;
  TextStream stream(demo_tokenizer(), {"ab"}, [&](std::string_view piece) {
    joined += piece;
    return true;
  });
  for (const char* part : {"x", "a"}) {
    for (const int32_t id : demo_tokenizer().encode(part, {.add_special_tokens = false})) stream.push(id);
  }
  EXPECT_EQ(joined, "x");
}

TEST(TextStream, StopsWhenTheCallerCancels) {
  TextStream stream(demo_tokenizer(), {}, [](std::string_view) { return false; });
  const std::vector<int32_t> ids = demo_tokenizer().encode("print(1)", {.add_special_tokens = false});
  EXPECT_FALSE(stream.push(ids.front()));
  EXPECT_TRUE(stream.canceled());
}

// Whatever the tokens are: the text ends before a stop text and contains none, and nothing is lost or doubled.
TEST(TextStream, KeepsItsPromisesForRandomTexts) {
  std::mt19937 random(7);
  const auto random_text = [&](size_t size) {
    std::string text;
    while (text.size() < size) text += "ab\n"[random() % 3];
    return text;
  };
  int num_stopped = 0;
  for (int round = 0; round < 500; ++round) {
    const std::string text = random_text(30);
    std::vector<std::string> stop;
    for (size_t i = 0; i <= random() % 3; ++i) stop.push_back(random_text(1 + random() % 6));
    const Streamed result = stream(text, stop);
    ASSERT_EQ(result.joined, result.text);
    ASSERT_TRUE(text.starts_with(result.text));
    for (const std::string& one : stop) ASSERT_EQ(result.text.find(one), std::string::npos);
    if (result.at_stop_text) {
      const std::string rest = text.substr(result.text.size());
      ASSERT_TRUE(std::ranges::any_of(stop, [&](const std::string& one) { return rest.starts_with(one); }));
      ++num_stopped;
    } else {
      ASSERT_EQ(result.text, text);
    }
  }
  EXPECT_GT(num_stopped, 100);
  EXPECT_LT(num_stopped, 500);
}

}  // namespace
}  // namespace blockdraft
