// The drafter behind its public class: the recorded drafts, whatever the way that leads to them.

#include "blockdraft/drafter.h"

#include <cmath>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/cpu_isa.h"
#include "support/expect_error.h"
#include "support/op_context.h"
#include "unit/head/head_fixture.h"

namespace blockdraft {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::IsEmpty;

class DrafterOfAnyFamily : public ::testing::TestWithParam<const char*> {
 protected:
  HeadFixture fixture_{GetParam()};
  Drafter drafter_ = fixture_.open();

  SequenceId start(int32_t length) {
    const SequenceId sequence = drafter_.new_sequence().value();
    EXPECT_TRUE(drafter_.extend_context(sequence, fixture_.taps(0, length), 0));
    return sequence;
  }
  DraftQuery query(SequenceId sequence, const GoldenCycle& cycle) const {
    return {sequence, cycle.anchor_id, cycle.length, drafter_.trained_width()};
  }
};

INSTANTIATE_TEST_SUITE_P(Golden, DrafterOfAnyFamily,
                         ::testing::Values("dflash_plain", "dflash_window_noncausal", "dflash_scale_softcap",
                                           "dflash2_plain", "dspark_vanilla_nested", "dspark_rnn_flat"));

TEST_P(DrafterOfAnyFamily, GivesTheRecordedDraftsAsTheContextGrows) {
  const SequenceId sequence = drafter_.new_sequence().value();
  int32_t length = 0;
  for (const GoldenCycle& cycle : fixture_.cycles()) {
    for (; length < cycle.length; ++length) {  // a row at a time
      ASSERT_TRUE(drafter_.extend_context(sequence, fixture_.taps(length, 1), length));
    }
    EXPECT_EQ(drafter_.context_length(sequence).value(), cycle.length);
    const Proposal proposal = propose_one(drafter_, query(sequence, cycle));
    EXPECT_THAT(proposal.ids, ElementsAreArray(cycle.drafts));
    EXPECT_EQ(proposal.kept_width, drafter_.trained_width());
  }
}

TEST_P(DrafterOfAnyFamily, FieldFault6_ABatchGivesWhatEachSequenceGivesAlone) {
  std::vector<SequenceId> sequences;
  std::vector<DraftQuery> queries;
  std::vector<ContextRows> rows;
  const auto& cycles = fixture_.cycles();
  for (const GoldenCycle& cycle : cycles) {
    sequences.push_back(drafter_.new_sequence().value());
    rows.push_back({.sequence = sequences.back(), .first_position = 0, .first_row = 0, .num_rows = cycle.length});
    queries.push_back(query(sequences.back(), cycle));
  }
  queries[1].width = 2;  // of different widths too
  ASSERT_TRUE(drafter_.extend_context(fixture_.taps(0, 64), rows));
  std::vector<Proposal> together;
  ASSERT_TRUE(drafter_.propose(queries, together));
  ASSERT_EQ(together.size(), cycles.size());
  for (size_t i = 0; i < cycles.size(); ++i) {
    const Proposal alone = propose_one(drafter_, queries[i]);
    EXPECT_EQ(together[i].ids, alone.ids) << "sequence " << i;
    EXPECT_EQ(together[i].confidences, alone.confidences) << "sequence " << i;
    if (i != 1) {  // a narrower block has other drafts
      EXPECT_THAT(together[i].ids, ElementsAreArray(cycles[i].drafts)) << "sequence " << i;
    }
  }
}

TEST_P(DrafterOfAnyFamily, RewoundAndExtendedAgainEqualsFresh) {
  const GoldenCycle& early = fixture_.cycles()[1];
  const GoldenCycle& late = fixture_.cycles()[3];
  const SequenceId sequence = start(30);
  // Rows that are not those of the text: the context of positions 30 .. 39 has to go entirely.
  ASSERT_TRUE(drafter_.extend_context(sequence, fixture_.taps(5, 10), 30));
  propose_one(drafter_, {sequence, early.anchor_id, 40, drafter_.trained_width()});
  ASSERT_TRUE(drafter_.rewind(sequence, 30));
  EXPECT_EQ(drafter_.context_length(sequence).value(), 30);
  ASSERT_TRUE(drafter_.extend_context(sequence, fixture_.taps(30, early.length - 30), 30));
  EXPECT_THAT(propose_one(drafter_, query(sequence, early)).ids, ElementsAreArray(early.drafts));

  ASSERT_TRUE(drafter_.rewind(sequence, early.length));  // nothing to drop
  ASSERT_TRUE(drafter_.extend_context(sequence, fixture_.taps(early.length, late.length - early.length), early.length));
  EXPECT_THAT(propose_one(drafter_, query(sequence, late)).ids, ElementsAreArray(late.drafts));
}

TEST_P(DrafterOfAnyFamily, SequencesComeAndGoIndependently) {
  const GoldenCycle& cycle = fixture_.cycles()[2];
  const SequenceId first = start(64);
  const SequenceId second = start(cycle.length);
  ASSERT_TRUE(drafter_.release(first));
  const SequenceId third = drafter_.new_sequence().value();  // takes the slot of the first
  EXPECT_NE(third, first);
  EXPECT_EQ(drafter_.context_length(third).value(), 0);
  ASSERT_TRUE(drafter_.extend_context(third, fixture_.taps(20, 30), 0));
  EXPECT_THAT(propose_one(drafter_, query(second, cycle)).ids, ElementsAreArray(cycle.drafts));
  expect_error(drafter_.context_length(first), Code::invalid_argument, {"sequence 0 is not open"});
}

TEST(Drafter, TellsWhatIsOpen) {
  const HeadFixture in_place("dflash_window_noncausal");
  const HeadFixture shifted("dspark_vanilla_nested");
  const Drafter first = in_place.open();
  const DrafterInfo& info = first.info();
  EXPECT_EQ(info.cpu_isa, name_of(test::float32_isa()));
  EXPECT_EQ(in_place.try_open({})->info().cpu_isa, name_of(choose_cpu_isa().value()));
  EXPECT_EQ(info.kind, "DFlash");
  EXPECT_THAT(first.target_layer_ids(), ElementsAre(1, 3, 4));
  EXPECT_EQ(info.tap_columns, 3 * 64);
  EXPECT_EQ(info.hidden_size, 64);
  EXPECT_EQ(info.block_size, 8);
  EXPECT_EQ(info.trained_width, 7);
  EXPECT_EQ(info.mask_token_id, 310);
  EXPECT_FALSE(info.shifted || info.has_confidence);
  EXPECT_EQ(info.window, 16);
  EXPECT_EQ(info.max_sequences, 4);
  EXPECT_EQ(info.max_positions, 128);
  EXPECT_GT(info.mapped_bytes, 0);
  EXPECT_GT(info.context_bytes, 0);
  EXPECT_GT(info.scratch_bytes, 0);
  const Drafter second = shifted.open({});
  EXPECT_EQ(second.info().kind, "DSpark");
  EXPECT_TRUE(second.info().shifted && second.info().has_confidence);
  EXPECT_EQ(second.trained_width(), 7);
  EXPECT_EQ(second.info().window, 0);
  EXPECT_EQ(second.info().max_positions, 4096);
}

TEST(Drafter, GivesTheRecordedConfidences) {
  const HeadFixture fixture("dspark_vanilla_nested");
  const GoldenCycle& cycle = fixture.cycles()[1];
  const std::vector<float> logits = fixture.recorded("cycle1.confidence_logits");
  std::vector<float> confidences;
  // Midway between the lowest and the others, so that the threshold cuts somewhere.
  float lowest = 1.0f;
  size_t at = 0;
  for (size_t threshold = 0; threshold < 2; ++threshold) {
    Drafter drafter =
        fixture.open({.max_positions = 128, .confidence_threshold = threshold == 0 ? 0.0f : lowest + 1e-4f});
    const SequenceId sequence = drafter.new_sequence().value();
    ASSERT_TRUE(drafter.extend_context(sequence, fixture.taps(0, cycle.length), 0));
    const Proposal proposal = propose_one(drafter, {sequence, cycle.anchor_id, cycle.length, 7});
    ASSERT_EQ(proposal.confidences.size(), logits.size());
    for (size_t i = 0; i < logits.size(); ++i) {
      const float expected = 1.0f / (1.0f + std::exp(-logits[i]));
      EXPECT_NEAR(proposal.confidences[i], expected, 1e-4f);
      if (expected < lowest) lowest = expected, at = i;
    }
    EXPECT_THAT(proposal.ids, ElementsAreArray(cycle.drafts));
    EXPECT_EQ(proposal.kept_width, threshold == 0 ? 7 : static_cast<int32_t>(at));
  }
}

// What a family draws from, and what it says that it drew from, are compared in tests/property_sampling.
TEST_P(DrafterOfAnyFamily, HandsOutTheLawOfEveryDraftThatIsTestedByRatio) {
  const GoldenCycle& cycle = fixture_.cycles()[1];
  const GoldenCycle& other = fixture_.cycles()[2];
  DraftQuery drawn = query(start(cycle.length), cycle);
  const DraftQuery greedy = query(start(other.length), other);
  drawn.sampling = {.temperature = 1.0f, .seed = 9, .acceptance = Acceptance::ratio};
  EXPECT_EQ(drafter_.info().law_bytes, 0);
  const std::vector<DraftQuery> queries{greedy, drawn};
  std::vector<Proposal> proposals;
  ASSERT_TRUE(drafter_.propose(queries, proposals));
  EXPECT_GT(drafter_.info().law_bytes, 0);
  EXPECT_THAT(proposals[0].ids, ElementsAreArray(other.drafts));
  EXPECT_THAT(proposals[0].laws, IsEmpty());
  ASSERT_EQ(proposals[1].laws.size(), proposals[1].ids.size());
  for (size_t i = 0; i < proposals[1].ids.size(); ++i) {
    const TokenLaw& law = proposals[1].laws[i];
    double sum = 0;
    for (const float p : law.probabilities) sum += static_cast<double>(p);
    EXPECT_NEAR(sum, 1.0, 1e-5);
    const int32_t id = proposals[1].ids[i];
    const auto place = law.ids.empty() ? id : std::ranges::find(law.ids, id) - law.ids.begin();
    ASSERT_LT(place, std::ssize(law.probabilities));
    EXPECT_GT(law.probabilities[static_cast<size_t>(place)], 0.0f);
  }
  const Proposal together = proposals[1];
  std::vector<std::vector<float>> laws;  // the arrays are the drafter's
  for (const TokenLaw& law : together.laws) laws.emplace_back(law.probabilities.begin(), law.probabilities.end());
  const Proposal alone = propose_one(drafter_, drawn);
  EXPECT_EQ(alone.ids, together.ids);
  for (size_t i = 0; i < laws.size(); ++i) EXPECT_THAT(alone.laws[i].probabilities, ElementsAreArray(laws[i]));

  drawn.sampling.acceptance = Acceptance::coupled;
  const Proposal coupled = propose_one(drafter_, drawn);
  EXPECT_NE(coupled.ids, together.ids) << "ratio drafts have noise of their own";
  EXPECT_THAT(coupled.laws, IsEmpty());
  drawn.sampling.temperature = 0.0f;
  EXPECT_THAT(propose_one(drafter_, drawn).ids, ElementsAreArray(cycle.drafts));
}

TEST(Drafter, OtherFamiliesHaveNoConfidences) {
  const HeadFixture fixture("dflash_plain");
  Drafter drafter = fixture.open();
  const SequenceId sequence = drafter.new_sequence().value();
  ASSERT_TRUE(drafter.extend_context(sequence, fixture.taps(0, 1), 0));
  EXPECT_THAT(propose_one(drafter, {sequence, 3, 1, 7}).confidences, IsEmpty());
  EXPECT_THAT(fixture.try_open({.confidence_threshold = 0.5f}).error().message,
              ::testing::HasSubstr("option confidence_threshold is 0.5, expected 0: "));
}

TEST(Drafter, NeverDraftsPaddingIds) {
  const HeadFixture fixture("dflash_plain");
  TargetTensors tensors = fixture.tensors();
  tensors.num_real_ids = 311;  // just above the mask id
  for (const int64_t real_ids : {int64_t{0}, int64_t{311}}) {
    tensors.num_real_ids = real_ids;
    auto drafter = Drafter::open(fixture.folder(), {.max_positions = 128}, tensors);
    ASSERT_TRUE(drafter) << drafter.error().message;
    const SequenceId sequence = drafter->new_sequence().value();
    ASSERT_TRUE(drafter->extend_context(sequence, fixture.taps(0, 37), 0));
    const DraftQuery padding{sequence, 311, 37, 7};
    std::vector<Proposal> proposals;
    EXPECT_EQ(drafter->propose({&padding, 1}, proposals).ok(), real_ids == 0);
    EXPECT_THAT(propose_one(*drafter, {sequence, 174, 37, 7}).ids, Each(::testing::Lt(real_ids == 0 ? 320 : 311)));
  }
}

TEST(Drafter, RewindsAsFarAsTheWindowsHavePages) {
  const HeadFixture fixture("dflash_window_noncausal");  // window 16
  Drafter drafter = fixture.open();
  const SequenceId sequence = drafter.new_sequence().value();
  for (int32_t length = 0; length < 60; ++length) {
    ASSERT_TRUE(drafter.extend_context(sequence, fixture.taps(length, 1), length));
  }
  // Row 59 was the newest: its window begins at 44, in the page of positions 32 .. 47.
  expect_error(drafter.rewind(sequence, 40), Code::limit_exceeded,
               {"sequence 0: cannot rewind to position 40", "nothing before 47"});
  ASSERT_TRUE(drafter.rewind(sequence, 47));
  for (int32_t length = 47; length < 64; ++length) {
    ASSERT_TRUE(drafter.extend_context(sequence, fixture.taps(length, 1), length));
  }
  const GoldenCycle& cycle = fixture.cycles()[3];
  EXPECT_THAT(propose_one(drafter, {sequence, cycle.anchor_id, 64, 7}).ids, ElementsAreArray(cycle.drafts));
}

}  // namespace
}  // namespace blockdraft
