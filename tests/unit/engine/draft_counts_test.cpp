#include "engine/draft_counts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace blockdraft {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(DraftWarnings, EachFaultHasItsSentence) {
  EXPECT_THAT(draft_warnings({.cycles = 40, .verified = 280, .accepted = 1}), IsEmpty());
  EXPECT_THAT(draft_warnings({.cycles = 40, .verified = 280, .accepted = 279, .masks = 279}), IsEmpty());
  EXPECT_THAT(draft_warnings({.cycles = 40, .verified = 280}),
              ElementsAre(HasSubstr("none of 280 drafts in 40 cycles was accepted")));
  EXPECT_THAT(draft_warnings({.cycles = 40, .verified = 280, .accepted = 280}),
              ElementsAre(HasSubstr("all 280 drafts in 40 cycles were accepted")));
  EXPECT_THAT(draft_warnings({.cycles = 40, .verified = 280, .masks = 280}),
              ElementsAre(HasSubstr("all 280 drafts in 40 cycles were the mask id"), HasSubstr("none of 280")));
}

TEST(DraftWarnings, FewCyclesSayNothing) {
  EXPECT_THAT(draft_warnings({}), IsEmpty());
  EXPECT_THAT(draft_warnings({.cycles = kMinCyclesToJudge - 1, .verified = 217}), IsEmpty());
  EXPECT_THAT(draft_warnings({.cycles = kMinCyclesToJudge, .verified = 224}), ElementsAre(HasSubstr("none")));
}

}  // namespace
}  // namespace blockdraft
