// The C functions give what the C++ class gives.

#include <algorithm>
#include <cstring>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "blockdraft/accept.h"
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

Status to_law(std::span<float> row, const Sampling& sampling) { return to_probabilities(row, sampling); }

Status to_law(std::span<float> row, const blockdraft_sampling& sampling) {
  blockdraft_error error{};
  if (blockdraft_to_probabilities(row.data(), row.size(), &sampling, &error) == BLOCKDRAFT_OK) return {};
  return Error{Code::invalid_argument, error.message};
}

// A target that often agrees with the drafts.
template <class AnySampling>
std::vector<float> target_rows(const Proposal& proposal, size_t vocabulary, const AnySampling& sampling) {
  std::mt19937 generator(8);
  std::normal_distribution<float> normal;
  std::vector<float> rows((proposal.ids.size() + 1) * vocabulary);
  for (float& logit : rows) logit = normal(generator);
  for (size_t j = 0; j <= proposal.ids.size(); ++j) {
    const auto row = std::span(rows).subspan(j * vocabulary, vocabulary);
    if (j < proposal.ids.size()) row[static_cast<size_t>(proposal.ids[j])] = 4.0f;
    const Status status = to_law(row, sampling);
    EXPECT_TRUE(status) << status.error().message;
  }
  return rows;
}

void expect_same(const blockdraft_token_law& found, const TokenLaw& expected) {
  EXPECT_GT(found.count, 0u);
  EXPECT_THAT(std::span(found.probabilities, found.count), ElementsAreArray(expected.probabilities));
  EXPECT_THAT(std::span(found.ids, found.ids == nullptr ? 0 : found.count), ElementsAreArray(expected.ids));
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

TEST(CApi, HandsWarningsOut) {
  const HeadFixture fixture("dflash2_block_nested_wins");  // block_size in two places
  const blockdraft_target_tensors target = tensors_of(fixture);
  blockdraft_error error{};
  blockdraft_drafter* drafter = nullptr;
  ASSERT_EQ(blockdraft_drafter_open(fixture.folder().c_str(), nullptr, &target, &drafter, &error), BLOCKDRAFT_OK)
      << error.message;
  blockdraft_drafter_info info{};
  ASSERT_EQ(blockdraft_drafter_get_info(drafter, &info, &error), BLOCKDRAFT_OK);
  ASSERT_EQ(info.num_warnings, 1);
  EXPECT_THAT(blockdraft_drafter_warning(drafter, 0), HasSubstr("'dflash_config.block_size' is 6 but 'block_size' is"));
  EXPECT_EQ(blockdraft_drafter_warning(drafter, 1), nullptr);
  EXPECT_EQ(blockdraft_drafter_warning(drafter, -1), nullptr);
  EXPECT_EQ(blockdraft_drafter_warning(nullptr, 0), nullptr);
  blockdraft_drafter_close(drafter);
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
  EXPECT_EQ(blockdraft_drafter_propose(drafter, nullptr, 1, nullptr, &error), BLOCKDRAFT_INVALID_ARGUMENT);
  blockdraft_drafter_close(drafter);
  blockdraft_drafter_close(nullptr);
}

// What the class hands out and what the functions hand out, and what both make of it.
TEST(CApi, DrawsAndAcceptsByRatioAsTheClassDoes) {
  const Sampling sampling{.temperature = 0.9f, .top_k = 40, .top_p = 0.95f, .seed = 3, .acceptance = Acceptance::ratio};
  blockdraft_sampling c_sampling{};
  c_sampling.temperature = 0.9f;
  c_sampling.top_k = 40;
  c_sampling.top_p = 0.95f;
  c_sampling.seed = 3;
  c_sampling.acceptance = BLOCKDRAFT_RATIO;
  for (const char* name : {"dflash_plain", "dflash2_plain", "dspark_vanilla_nested"}) {
    SCOPED_TRACE(name);
    const HeadFixture fixture(name);
    const GoldenCycle& cycle = fixture.cycles()[1];
    Drafter drafter = std::move(fixture.try_open({})).value();
    const SequenceId sequence = drafter.new_sequence().value();
    ASSERT_TRUE(drafter.extend_context(sequence, fixture.taps(0, cycle.length), 0));
    const int32_t width = drafter.trained_width();
    const Proposal proposal = propose_one(drafter, {sequence, cycle.anchor_id, cycle.length, width, sampling});
    ASSERT_EQ(proposal.laws.size(), static_cast<size_t>(width));

    blockdraft_error error{};
    const blockdraft_target_tensors target = tensors_of(fixture);
    blockdraft_drafter* c_drafter = nullptr;
    ASSERT_EQ(blockdraft_drafter_open(fixture.folder().c_str(), nullptr, &target, &c_drafter, &error), BLOCKDRAFT_OK);
    blockdraft_draft_query query{0, cycle.anchor_id, cycle.length, width, c_sampling};
    ASSERT_EQ(blockdraft_drafter_new_sequence(c_drafter, &query.sequence, &error), BLOCKDRAFT_OK);
    const blockdraft_context_rows rows{query.sequence, 0, 0, cycle.length};
    ASSERT_EQ(blockdraft_drafter_extend_context(c_drafter, fixture.taps(0, cycle.length).data(), cycle.length, &rows, 1,
                                                &error),
              BLOCKDRAFT_OK);
    std::vector<int32_t> ids(proposal.ids.size());
    std::vector<blockdraft_token_law> laws(proposal.ids.size());
    blockdraft_drafts out{};
    out.ids = ids.data();
    out.laws = laws.data();
    ASSERT_EQ(blockdraft_drafter_propose(c_drafter, &query, 1, &out, &error), BLOCKDRAFT_OK) << error.message;
    EXPECT_EQ(ids, proposal.ids);
    for (size_t i = 0; i < laws.size(); ++i) expect_same(laws[i], proposal.laws[i]);

    int32_t accepted = 0;
    for (uint32_t choice = 0; choice < 20; ++choice) {
      std::vector<float> p = target_rows(proposal, 320, sampling);
      std::vector<float> c_p = target_rows(proposal, 320, c_sampling);
      ASSERT_EQ(c_p, p);
      std::vector<int32_t> tokens;
      const auto kept = accept_ratio({.drafts = proposal.ids,
                                      .laws = proposal.laws,
                                      .probabilities = p,
                                      .position = cycle.length,
                                      .seed = 3,
                                      .choice = choice,
                                      .remaining = 4},
                                     tokens);
      ASSERT_TRUE(kept) << kept.error().message;
      const blockdraft_ratio_trial trial{ids.data(), laws.data(), ids.size(), c_p.data(), 320, cycle.length,
                                         3,          choice,      4,          nullptr,    0};
      std::vector<int32_t> c_tokens(ids.size() + 1);
      blockdraft_accepted_drafts c_kept{};
      ASSERT_EQ(blockdraft_accept_ratio(&trial, c_tokens.data(), &c_kept, &error), BLOCKDRAFT_OK) << error.message;
      EXPECT_EQ(c_kept.accepted, kept->accepted);
      EXPECT_EQ(c_kept.produced, kept->produced);
      EXPECT_EQ(c_kept.at_length, kept->at_length);
      c_tokens.resize(tokens.size());
      EXPECT_EQ(c_tokens, tokens);
      accepted += kept->accepted;
    }
    EXPECT_GT(accepted, 0);
    blockdraft_drafter_close(c_drafter);
  }
}

TEST(CApi, ChoosesTokensAsTheFunctionDoes) {
  std::vector<float> logits{0.5f, 2.0f, -1.0f, 2.0f};
  int32_t id = -1;
  blockdraft_error error{};
  ASSERT_EQ(blockdraft_choose_token(logits.data(), 4, nullptr, 7, &id, &error), BLOCKDRAFT_OK);
  EXPECT_EQ(id, 1);
  blockdraft_sampling sampling{};
  sampling.temperature = 1.5f;
  for (int32_t position = 0; position < 50; ++position) {
    ASSERT_EQ(blockdraft_choose_token(logits.data(), 4, &sampling, position, &id, &error), BLOCKDRAFT_OK);
    EXPECT_EQ(id, choose_token(logits, {.temperature = 1.5f}, position).value());
  }
  sampling.acceptance = 7;
  EXPECT_EQ(blockdraft_choose_token(logits.data(), 4, &sampling, 0, &id, &error), BLOCKDRAFT_INVALID_ARGUMENT);
  EXPECT_STREQ(error.message, "acceptance is 7, expected coupled or ratio");
  EXPECT_EQ(blockdraft_to_probabilities(nullptr, 4, nullptr, &error), BLOCKDRAFT_INVALID_ARGUMENT);
  EXPECT_EQ(blockdraft_accept_ratio(nullptr, &id, nullptr, &error), BLOCKDRAFT_INVALID_ARGUMENT);
}

TEST(CApi, AcceptsGreedily) {
  const int32_t drafts[] = {5, 6, 7};
  const int32_t choices[] = {5, 6, 9, 4};
  const int32_t stop = 9;
  blockdraft_accepted_drafts kept{};
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
