#include "engine/sequence.h"

#include <vector>

#include <gtest/gtest.h>

namespace blockdraft {
namespace {

Sequence started(std::vector<int32_t> prompt, int64_t max_length) {
  Sequence sequence;
  sequence.input.prompt_ids = prompt;
  sequence.tokens = std::move(prompt);
  sequence.max_length = max_length;
  return sequence;
}

TEST(Sequence, AppendsAndCounts) {
  Sequence sequence = started({5, 6}, 6);
  EXPECT_EQ(sequence.position(), 1);
  EXPECT_EQ(sequence.remaining(), 4);
  EXPECT_TRUE(sequence.generated().empty());
  const std::vector<int32_t> ids = {7, 8};
  EXPECT_EQ(sequence.append(ids, {.accepted = 1, .produced = 2}), 2);
  EXPECT_FALSE(sequence.ended);
  EXPECT_EQ(sequence.position(), 3);
  EXPECT_EQ(sequence.remaining(), 2);
  EXPECT_EQ(sequence.append(ids, {.produced = 2, .at_length = true}), 2);
  EXPECT_TRUE(sequence.ended);
  EXPECT_EQ(sequence.result.end, EndReason::at_length);
  EXPECT_EQ(std::vector<int32_t>(sequence.generated().begin(), sequence.generated().end()),
            (std::vector<int32_t>{7, 8, 7, 8}));
}

TEST(Sequence, AStopWinsOverTheLength) {
  Sequence sequence = started({5}, 2);
  const std::vector<int32_t> ids = {7};
  sequence.append(ids, {.produced = 1, .at_stop = true, .at_length = true});
  EXPECT_EQ(sequence.result.end, EndReason::at_stop);
}

TEST(Sequence, TheCallerMayEndItInside) {
  Sequence sequence = started({5}, 9);
  std::vector<int32_t> heard;
  sequence.input.on_token = [&](int32_t id) {
    heard.push_back(id);
    return heard.size() < 2;
  };
  const std::vector<int32_t> ids = {7, 8, 9};
  EXPECT_EQ(sequence.append(ids, {.produced = 3, .at_stop = true}), 2);
  EXPECT_TRUE(sequence.ended);
  EXPECT_EQ(sequence.result.end, EndReason::by_caller);
  EXPECT_EQ(heard, (std::vector<int32_t>{7, 8}));
  EXPECT_EQ(sequence.position(), 2);
}

}  // namespace
}  // namespace blockdraft
