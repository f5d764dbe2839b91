#include "text/bpe.h"

#include <random>

#include <gtest/gtest.h>

#include "text/byte_level.h"

namespace blockdraft {
namespace {

// A model over a few letters with random merges.
BpeModel random_model(std::mt19937& random, int num_merges) {
  BpeModel model;
  for (int byte = 0; byte < 256; ++byte) {
    EXPECT_TRUE(model.vocabulary.add(byte_spelling(static_cast<unsigned char>(byte)), byte).ok());
    model.byte_ids[static_cast<size_t>(byte)] = byte;
  }
  std::vector<int32_t> ids = {'a', 'b', 'c'};
  for (uint32_t rank = 0; static_cast<int>(rank) < num_merges; ++rank) {
    const int32_t left = ids[random() % ids.size()];
    const int32_t right = ids[random() % ids.size()];
    const std::string both = std::string(model.vocabulary.bytes(left)) + std::string(model.vocabulary.bytes(right));
    int32_t id = model.vocabulary.find(both);
    if (id < 0) {
      id = model.vocabulary.size();
      EXPECT_TRUE(model.vocabulary.add(both, id).ok());
      ids.push_back(id);
    }
    model.merges.add(left, right, {rank, id});
  }
  return model;
}

// The definition: merge the pair of lowest rank, the leftmost of equals, until there is none.
std::vector<int32_t> encode_by_definition(const BpeModel& model, std::string_view word) {
  std::vector<int32_t> ids;
  for (const char c : word) ids.push_back(model.byte_ids[static_cast<unsigned char>(c)]);
  while (true) {
    size_t best = ids.size();
    const Merge* best_merge = nullptr;
    for (size_t i = 0; i + 1 < ids.size(); ++i) {
      const Merge* merge = model.merges.find(ids[i], ids[i + 1]);
      if (merge == nullptr || (best_merge != nullptr && merge->rank >= best_merge->rank)) continue;
      best = i;
      best_merge = merge;
    }
    if (best_merge == nullptr) return ids;
    ids[best] = best_merge->id;
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
}

std::string random_word(std::mt19937& random, size_t size) {
  std::string word(size, 0);
  for (char& c : word) c = "abc"[random() % 3];
  return word;
}

// Lengths on both sides of the limits between the ways of merging and of the cache.
TEST(WordEncoder, FollowsTheDefinition) {
  std::mt19937 random(11);
  for (int round = 0; round < 60; ++round) {
    const BpeModel model = random_model(random, static_cast<int>(random() % 60));
    WordEncoder encoder(model);
    for (size_t size = 1; size < 140; size += 1 + random() % 7) {
      const std::string word = random_word(random, size);
      const std::vector<int32_t> expected = encode_by_definition(model, word);
      for (int time = 0; time < 2; ++time) {  // the second time from the cache, where the word is short
        std::vector<int32_t> ids = {-7};
        encoder.encode(word, ids);
        ASSERT_EQ(ids.front(), -7);
        ids.erase(ids.begin());
        ASSERT_EQ(ids, expected) << word;
      }
    }
  }
}

TEST(WordEncoder, TheCacheForgetsWithoutHarm) {
  std::mt19937 random(12);
  const BpeModel model = random_model(random, 40);
  WordEncoder encoder(model);
  for (int i = 0; i < 100000; ++i) {  // more words than the cache holds
    const std::string word = random_word(random, 10 + random() % 4);
    std::vector<int32_t> ids;
    encoder.encode(word, ids);
    std::string joined;
    for (const int32_t id : ids) joined += model.vocabulary.bytes(id);
    ASSERT_EQ(joined, word);
    if (i % 1000 == 0) {
      ASSERT_EQ(ids, encode_by_definition(model, word));
    }
  }
}

// Looking at all symbols for every merge would take 10^11 steps.
TEST(WordEncoder, LongWordsAreNotQuadratic) {
  std::mt19937 random(13);
  const BpeModel model = random_model(random, 50);
  WordEncoder encoder(model);
  for (const std::string& word : {std::string(400000, 'a'), random_word(random, 400000)}) {
    std::vector<int32_t> ids;
    encoder.encode(word, ids);
    std::string joined;
    for (const int32_t id : ids) joined += model.vocabulary.bytes(id);
    EXPECT_EQ(joined, word);
  }
}

TEST(WordEncoder, IgnoreMergesTakesWholeWords) {
  std::mt19937 random(14);
  BpeModel model = random_model(random, 0);
  ASSERT_TRUE(model.vocabulary.add("hello", 300).ok());
  std::vector<int32_t> ids;
  WordEncoder(model).encode("hello", ids);
  EXPECT_EQ(ids, (std::vector<int32_t>{'h', 'e', 'l', 'l', 'o'}));
  model.ignore_merges = true;
  ids.clear();
  WordEncoder(model).encode("hello", ids);
  EXPECT_EQ(ids, (std::vector<int32_t>{300}));
}

TEST(Vocabulary, FindsByBytesAndBySpelling) {
  Vocabulary vocabulary;
  ASSERT_TRUE(vocabulary.add("\u0120the", 5).ok());
  ASSERT_TRUE(vocabulary.add("\uFF5Cx", 2).ok());  // literal text
  vocabulary.add_unlisted("<s>", 9);
  EXPECT_EQ(vocabulary.find(" the"), 5);
  EXPECT_EQ(vocabulary.find_spelling("\u0120the"), 5);
  EXPECT_EQ(vocabulary.find("\uFF5Cx"), -1);
  EXPECT_EQ(vocabulary.find_spelling("\uFF5Cx"), 2);
  EXPECT_EQ(vocabulary.find_literal("\uFF5Cx"), 2);
  EXPECT_EQ(vocabulary.find("<s>"), -1);
  EXPECT_EQ(vocabulary.bytes(9), "<s>");
  EXPECT_EQ(vocabulary.bytes(5), " the");
  EXPECT_EQ(vocabulary.bytes(3), "");
  EXPECT_EQ(vocabulary.bytes(-1), "");
  EXPECT_EQ(vocabulary.bytes(10), "");
  EXPECT_FALSE(vocabulary.has(3));
  EXPECT_EQ(vocabulary.size(), 10);
  EXPECT_FALSE(vocabulary.add("\u0120the", 6).ok());
  EXPECT_FALSE(vocabulary.add("other", 5).ok());
}

}  // namespace
}  // namespace blockdraft
