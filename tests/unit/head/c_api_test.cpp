// The C functions give what the C++ class gives.

#include <cstring>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "blockdraft/blockdraft.h"
#include "unit/head/c_host.h"
#include "unit/head/head_fixture.h"

namespace blockdraft {
namespace {

using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

blockdraft_matrix matrix_of(const MatrixView& view) {
  return {view.data, static_cast<int32_t>(view.type), view.rows, view.columns, view.row_scales};
}

blockdraft_target_tensors tensors_of(const HeadFixture& fixture) {
  const TargetTensors tensors = fixture.tensors();
  return {matrix_of(tensors.embed_tokens), matrix_of(tensors.lm_head), tensors.num_layers, 0, 0.0f};
}

TEST(CApi, DraftsAsTheClassDoes) {
  for (const char* name : {"dflash_plain", "dspark_vanilla_nested"}) {
    const HeadFixture fixture(name);
    const blockdraft_target_tensors target = tensors_of(fixture);
    const GoldenCycle& cycle = fixture.cycles()[1];
    std::vector<int32_t> ids(cycle.drafts.size());
    std::vector<float> confidences(cycle.drafts.size(), -1.0f);
    blockdraft_error error{};
    EXPECT_EQ(c_host_run(fixture.folder().c_str(), &target, fixture.taps(0, cycle.length).data(), cycle.length,
                         cycle.anchor_id, ids.data(), confidences.data(), &error),
              BLOCKDRAFT_OK)
        << error.message;
    EXPECT_THAT(ids, ElementsAreArray(cycle.drafts));
    EXPECT_EQ(confidences[0] >= 0.0f, std::string(name) == "dspark_vanilla_nested");
  }
}

TEST(CApi, SaysWhatIsWrong) {
  const HeadFixture fixture("dflash_plain");
  const blockdraft_target_tensors target = tensors_of(fixture);
  blockdraft_error error{};
  blockdraft_drafter* drafter = nullptr;
  EXPECT_EQ(blockdraft_drafter_open(nullptr, nullptr, &target, &drafter, &error), BLOCKDRAFT_INVALID_ARGUMENT);
  EXPECT_STREQ(error.message, "folder is NULL, expected a pointer");
  EXPECT_EQ(blockdraft_drafter_open("no such folder", nullptr, &target, &drafter, &error), BLOCKDRAFT_NOT_FOUND);
  EXPECT_THAT(error.message, HasSubstr("no such folder"));
  EXPECT_EQ(blockdraft_drafter_open("no such folder", nullptr, &target, &drafter, nullptr), BLOCKDRAFT_NOT_FOUND);
  EXPECT_EQ(drafter, nullptr);
  const std::string long_name = std::string(1500, 'x') + "\xc3\xa9";
  EXPECT_NE(blockdraft_drafter_open(long_name.c_str(), nullptr, &target, &drafter, &error), BLOCKDRAFT_OK);
  EXPECT_LT(std::strlen(error.message), sizeof error.message);

  ASSERT_EQ(blockdraft_drafter_open(fixture.folder().c_str(), nullptr, &target, &drafter, &error), BLOCKDRAFT_OK)
      << error.message;
  EXPECT_EQ(blockdraft_drafter_release(drafter, 5, &error), BLOCKDRAFT_INVALID_ARGUMENT);
  EXPECT_STREQ(error.message, "sequence 5 is not open, expected an id of new_sequence");
  EXPECT_EQ(blockdraft_drafter_extend_context(drafter, nullptr, -1, nullptr, 0, &error), BLOCKDRAFT_INVALID_ARGUMENT);
  EXPECT_THAT(error.message, HasSubstr("tap_rows is -1"));
  EXPECT_EQ(blockdraft_drafter_propose(drafter, nullptr, 1, nullptr, nullptr, nullptr, &error),
            BLOCKDRAFT_INVALID_ARGUMENT);
  blockdraft_drafter_close(drafter);
  blockdraft_drafter_close(nullptr);
}

TEST(CApi, AcceptsGreedily) {
  const int32_t drafts[] = {5, 6, 7};
  const int32_t choices[] = {5, 6, 9, 4};
  const int32_t stop = 9;
  blockdraft_greedy_acceptance kept{};
  blockdraft_error error{};
  ASSERT_EQ(blockdraft_accept_greedy(drafts, 3, choices, 10, &stop, 1, &kept, &error), BLOCKDRAFT_OK);
  EXPECT_EQ(kept.accepted, 2);
  EXPECT_EQ(kept.produced, 3);
  EXPECT_EQ(kept.at_stop, 1);
  EXPECT_EQ(kept.at_length, 0);
  EXPECT_EQ(blockdraft_accept_greedy(drafts, 3, choices, 0, nullptr, 0, &kept, &error), BLOCKDRAFT_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace blockdraft
