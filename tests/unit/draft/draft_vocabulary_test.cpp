#include "draft/draft_vocabulary.h"

#include <cstring>
#include <limits>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/expect_error.h"

namespace blockdraft {
namespace {

using testing::ElementsAre;

constexpr int64_t kVocab = 10;

// Tensors as a file would hold them.
template <class T>
StoredTensor stored(DType dtype, const std::vector<T>& values) {
  return {dtype,
          {static_cast<int64_t>(values.size())},
          reinterpret_cast<const std::byte*>(values.data()),
          values.size() * sizeof(T)};
}

Result<std::vector<int32_t>> read(const std::vector<int64_t>& d2t, const std::vector<int32_t>& marked = {},
                                  bool with_t2d = false) {
  const StoredTensor d2t_tensor = stored(DType::i64, d2t);
  if (!with_t2d) {
    return read_draft_vocabulary(d2t_tensor, nullptr, static_cast<int64_t>(d2t.size()), kVocab, "folder");
  }
  std::vector<uint8_t> flags(kVocab);
  for (const int32_t id : marked) flags[static_cast<size_t>(id)] = 1;
  const StoredTensor t2d_tensor = stored(DType::boolean, flags);
  return read_draft_vocabulary(d2t_tensor, &t2d_tensor, static_cast<int64_t>(d2t.size()), kVocab, "folder");
}

TEST(DraftVocabulary, ReadsOffsets) {
  EXPECT_THAT(read({0, 0, 2, 5}).value(), ElementsAre(0, 1, 4, 8));
  EXPECT_THAT(read({0, 0, 0}).value(), ElementsAre(0, 1, 2));
  EXPECT_THAT(read({0, 0, 2, 5}, {0, 1, 4, 8}, true).value(), ElementsAre(0, 1, 4, 8));
}

TEST(DraftVocabulary, ReadsAbsoluteIds) {
  // As offsets these would be 2, 5, 9, 12: beyond the vocabulary.
  EXPECT_THAT(read({2, 4, 7, 9}).value(), ElementsAre(2, 4, 7, 9));
  EXPECT_THAT(read({0, 1, 2}, {0, 1, 2}, true).value(), ElementsAre(0, 1, 2));
}

TEST(DraftVocabulary, WhatT2dMarksDecides) {
  EXPECT_THAT(read({0, 1, 2}, {0, 2, 4}, true).value(), ElementsAre(0, 2, 4));
  EXPECT_THAT(read({0, 1, 2}).value(), ElementsAre(0, 2, 4)) << "without it, offsets are the custom of such files";
}

TEST(DraftVocabulary, ReadsNarrowIntegers) {
  const std::vector<int32_t> d2t = {1, 1, 3};
  EXPECT_THAT(read_draft_vocabulary(stored(DType::i32, d2t), nullptr, 3, kVocab, "folder").value(),
              ElementsAre(1, 2, 5));
}

TEST(DraftVocabulary, RefusesWhatNeitherReadingExplains) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
  const std::vector<std::vector<int64_t>> hostile = {{5, 3, 4, 12},   {0, -2, 0, 0}, {-1, 0, 0, 0},   {0, 0, 0, 7},
                                                     {0, 0, 0, kMax}, {kMin, 0, 0},  {kMax, kMax, 0}, {kMin, kMin}};
  for (const auto& d2t : hostile) {
    expect_error(read(d2t), Code::corrupt_file, {"folder", "'d2t'", "10"});
  }
  expect_error(read({0, 0, 2}, {0, 1, 5}, true), Code::corrupt_file, {"folder", "'d2t'", "'t2d'"});
  expect_error(read({0, 0, 2}, {0, 1, 4, 9}, true), Code::corrupt_file, {"'t2d'"});
  expect_error(read({0, 0, 2}, {0, 1}, true), Code::corrupt_file, {"'t2d'"});
}

TEST(DraftVocabulary, RefusesOtherShapesAndTypes) {
  const std::vector<int64_t> d2t = {0, 0};
  expect_error(read_draft_vocabulary(stored(DType::i64, d2t), nullptr, 3, kVocab, "folder"), Code::mismatch,
               {"folder", "'d2t'", "[2]", "[3]"});
  const std::vector<float> floats = {0, 0};
  expect_error(read_draft_vocabulary(stored(DType::f32, floats), nullptr, 2, kVocab, "folder"), Code::unsupported,
               {"folder", "'d2t'", "F32", "I64"});
  const std::vector<uint8_t> short_flags(kVocab - 1);
  const StoredTensor short_t2d = stored(DType::boolean, short_flags);
  expect_error(read_draft_vocabulary(stored(DType::i64, d2t), &short_t2d, 2, kVocab, "folder"), Code::mismatch,
               {"'t2d'", "[9]", "[10]"});
  const std::vector<uint8_t> bytes(kVocab);
  const StoredTensor byte_t2d = stored(DType::u8, bytes);
  expect_error(read_draft_vocabulary(stored(DType::i64, d2t), &byte_t2d, 2, kVocab, "folder"), Code::mismatch,
               {"'t2d'", "U8", "BOOL"});
}

}  // namespace
}  // namespace blockdraft
