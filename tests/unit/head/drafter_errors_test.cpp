// What a host may say wrongly, and that saying it changes nothing.

#include <limits>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "blockdraft/drafter.h"
#include "support/expect_error.h"
#include "unit/head/head_fixture.h"

namespace blockdraft {
namespace {

class DrafterErrors : public ::testing::Test {
 protected:
  Status propose(const std::vector<DraftQuery>& queries) { return drafter_.propose(queries, proposals_); }
  Status propose(const DraftQuery& query) { return propose(std::vector{query}); }

  HeadFixture fixture_{"dflash_plain"};
  Drafter drafter_ = fixture_.open({.max_sequences = 2, .max_positions = 50});
  SequenceId sequence_ = drafter_.new_sequence().value();
  std::vector<Proposal> proposals_;
};

TEST_F(DrafterErrors, OptionsOutOfRange) {
  const auto refused = [&](const DrafterOptions& options, std::string_view message) {
    expect_error(fixture_.try_open(options), Code::invalid_argument, {message});
  };
  refused({.threads = -1}, "option threads is -1, expected 0 to 1024");
  refused({.max_sequences = 0}, "option max_sequences is 0, expected 1 to 1024");
  refused({.max_positions = -5}, "option max_positions is -5, expected 0 to 16777216");
  refused({.cpu_isa = "sse9"}, "option cpu_isa is 'sse9', expected portable, avx2, avx512 or avx512_bf16");
  refused({.confidence_threshold = 1.5f}, "option confidence_threshold is 1.5, expected 0 to 1");
  refused({.confidence_threshold = std::numeric_limits<float>::quiet_NaN()}, "option confidence_threshold is nan");
}

TEST_F(DrafterErrors, ViewsThatCannotBe) {
  const auto refused = [&](auto change, Code code, std::initializer_list<std::string_view> parts) {
    TargetTensors tensors = fixture_.tensors();
    change(tensors);
    expect_error(Drafter::open(fixture_.folder(), {}, tensors), code, parts);
  };
  const std::vector<float> scales(320, 1.0f);
  refused([](TargetTensors& t) { t.lm_head.data = nullptr; }, Code::invalid_argument, {"lm_head: data is null"});
  refused([](TargetTensors& t) { t.embed_tokens.rows = 0; }, Code::invalid_argument, {"embed_tokens: rows is 0"});
  refused([](TargetTensors& t) { t.embed_tokens.columns = -1; }, Code::invalid_argument,
          {"embed_tokens: columns is -1"});
  refused([](TargetTensors& t) { t.lm_head.columns = 32; }, Code::invalid_argument,
          {"lm_head: columns is 32, expected 64"});
  refused([](TargetTensors& t) { t.lm_head.type = MatrixType::fp8_e4m3; }, Code::invalid_argument,
          {"lm_head: type is F8_E4M3, row_scales is null, expected one scale a row"});
  refused([&](TargetTensors& t) { t.lm_head.row_scales = scales.data(); }, Code::invalid_argument,
          {"lm_head: type is BF16, row_scales is given, expected null"});
  refused([](TargetTensors& t) { t.lm_head.type = static_cast<MatrixType>(9); }, Code::invalid_argument,
          {"lm_head: type is 9"});
  refused([](TargetTensors& t) { t.num_real_ids = 321; }, Code::invalid_argument, {"num_real_ids is 321, expected 1"});
  refused([](TargetTensors& t) { t.num_layers = 0; }, Code::invalid_argument, {"num_layers is 0"});
  refused([](TargetTensors& t) { t.embedding_scale = std::numeric_limits<float>::infinity(); }, Code::invalid_argument,
          {"embedding_scale is inf"});
  refused([](TargetTensors& t) { t.num_layers = 12; }, Code::mismatch, {"config.json", "decoder layers", "12"});
}

TEST_F(DrafterErrors, SamplingOutOfRange) {
  ASSERT_TRUE(drafter_.extend_context(sequence_, fixture_.taps(0, 4), 0));
  const auto refused = [&](const Sampling& sampling, std::string_view message) {
    expect_error(propose({sequence_, 3, 4, 2, sampling}), Code::invalid_argument, {message});
  };
  refused({.temperature = 101}, "query 0: temperature is 101, expected 0 to 100");
  refused({.temperature = std::numeric_limits<float>::quiet_NaN()}, "query 0: temperature is nan");
  refused({.top_k = -1}, "query 0: top_k is -1, expected 0");
  refused({.top_p = 0}, "query 0: top_p is 0, expected more than 0 and at most 1");
  refused({.min_p = 2}, "query 0: min_p is 2, expected 0 to 1");
  refused({.acceptance = static_cast<Acceptance>(5)}, "query 0: acceptance is 5, expected coupled or ratio");
  ASSERT_TRUE(propose({sequence_, 3, 4, 2}));
}

TEST_F(DrafterErrors, SequencesThatAreNotOpen) {
  const std::string_view message = "sequence 77 is not open";
  const SequenceId stranger{77};
  expect_error(drafter_.release(stranger), Code::invalid_argument, {message});
  expect_error(drafter_.extend_context(stranger, fixture_.taps(0, 1), 0), Code::invalid_argument, {message});
  expect_error(drafter_.rewind(stranger, 0), Code::invalid_argument, {message});
  expect_error(propose({stranger, 1, 0, 1}), Code::invalid_argument, {message});
  expect_error(drafter_.context_length(SequenceId{-1}), Code::invalid_argument, {"sequence -1 is not open"});
  ASSERT_TRUE(drafter_.new_sequence());
  expect_error(drafter_.new_sequence(), Code::limit_exceeded, {"2 sequences are open, max_sequences is 2"});
  ASSERT_TRUE(drafter_.release(sequence_));
  expect_error(drafter_.release(sequence_), Code::invalid_argument, {"sequence 0 is not open"});
}

TEST_F(DrafterErrors, TapsThatDoNotContinueTheContext) {
  ASSERT_TRUE(drafter_.extend_context(sequence_, fixture_.taps(0, 5), 0));
  expect_error(drafter_.extend_context(sequence_, fixture_.taps(0, 1), 4), Code::invalid_argument,
               {"sequence 0: taps begin at position 4, expected 5"});
  expect_error(drafter_.extend_context(sequence_, fixture_.taps(0, 1), 6), Code::invalid_argument, {"expected 5"});
  expect_error(drafter_.extend_context(sequence_, fixture_.taps(0, 2).first(200), 5), Code::invalid_argument,
               {"taps have 200 numbers, expected a multiple of 192: 3 layers of 64"});
  expect_error(drafter_.extend_context(sequence_, fixture_.taps(0, 46), 5), Code::limit_exceeded,
               {"sequence 0: a context of 51 positions, max_positions is 50"});
  ASSERT_TRUE(drafter_.extend_context(sequence_, fixture_.taps(0, 0), 5));
  EXPECT_EQ(drafter_.context_length(sequence_).value(), 5);
}

TEST_F(DrafterErrors, RowsOfABatchThatAreNotThere) {
  const SequenceId other = drafter_.new_sequence().value();
  const auto extend = [&](std::vector<ContextRows> rows) { return drafter_.extend_context(fixture_.taps(0, 4), rows); };
  const ContextRows good{.sequence = sequence_, .num_rows = 4};
  constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();
  for (const ContextRows& bad :
       {ContextRows{other, 0, 2, 3}, ContextRows{other, 0, -1, 1}, ContextRows{other, 0, 0, -1},
        ContextRows{other, 0, kHuge, 1}, ContextRows{other, 0, 1, kHuge}}) {
    expect_error(extend({good, bad}), Code::invalid_argument, {"sequence 1: ", "the taps have 4 rows"});
  }
  expect_error(extend({good, good}), Code::invalid_argument, {"sequence 0 is named twice in one call"});
  EXPECT_EQ(drafter_.context_length(sequence_).value(), 0);  // the good part was not taken either
}

TEST_F(DrafterErrors, QueriesOutOfRange) {
  ASSERT_TRUE(drafter_.extend_context(sequence_, fixture_.taps(0, 5), 0));
  const SequenceId other = drafter_.new_sequence().value();
  const DraftQuery good{other, 1, 0, 2};
  const auto refused = [&](const DraftQuery& bad, std::string_view message) {
    expect_error(propose({good, bad}), Code::invalid_argument, {message});
  };
  refused({sequence_, 1, 4, 7}, "query 1: the anchor's position is 4, expected 5");
  refused({sequence_, -1, 5, 7}, "query 1: anchor id is -1, expected 0 to 319");
  refused({sequence_, 320, 5, 7}, "query 1: anchor id is 320, expected 0 to 319");
  refused({sequence_, 1, 5, 0}, "query 1: width is 0, expected 1 to 7");
  refused({sequence_, 1, 5, 8}, "query 1: width is 8, expected 1 to 7");
  refused(good, "sequence 1 is named twice");
  ASSERT_TRUE(drafter_.extend_context(sequence_, fixture_.taps(5, 40), 5));
  expect_error(propose({sequence_, 1, 45, 5}), Code::limit_exceeded,
               {"query 0: drafts up to position 50, max_positions is 50"});
  EXPECT_TRUE(propose({sequence_, 1, 45, 4}));
  EXPECT_TRUE(propose(std::vector<DraftQuery>{}));
  EXPECT_TRUE(proposals_.empty());
}

TEST_F(DrafterErrors, RewindsBeyondTheContext) {
  ASSERT_TRUE(drafter_.extend_context(sequence_, fixture_.taps(0, 5), 0));
  expect_error(drafter_.rewind(sequence_, 6), Code::invalid_argument,
               {"sequence 0: cannot rewind to position 6, its context ends at 5"});
  expect_error(drafter_.rewind(sequence_, -1), Code::invalid_argument, {"position -1"});
}

TEST_F(DrafterErrors, TapsThatAreNotNumbers) {
  const std::vector<float> taps(192, std::numeric_limits<float>::quiet_NaN());
  ASSERT_TRUE(drafter_.extend_context(sequence_, taps, 0));
  expect_error(propose({sequence_, 1, 1, 7}), Code::numeric, {"not numbers"});
  // The sequence can be mended.
  ASSERT_TRUE(drafter_.rewind(sequence_, 0));
  const GoldenCycle& cycle = fixture_.cycles()[0];
  ASSERT_TRUE(drafter_.extend_context(sequence_, fixture_.taps(0, 1), 0));
  ASSERT_TRUE(propose({sequence_, cycle.anchor_id, 1, 7}));
  EXPECT_THAT(proposals_[0].ids, ::testing::ElementsAreArray(cycle.drafts));
}

}  // namespace
}  // namespace blockdraft
