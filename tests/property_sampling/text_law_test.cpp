// The first three tokens of a text have exactly the target's law, whoever drafts, however drafts are accepted, whatever
// a request says of how tokens are drawn.

#include <cmath>

#include <gtest/gtest.h>

#include "property_sampling/three_tokens.h"

namespace blockdraft::test {
namespace {

constexpr int64_t kTexts = 12000;

class TextLaw : public testing::TestWithParam<std::tuple<TinyFamily, AcceptanceRule>> {};

// Width 1 puts the third token behind a kept draft, width 3 makes it a draft itself.
TEST_P(TextLaw, FieldFault15_IsTheTargets) {
  const auto [family, acceptance] = GetParam();
  Decoder decoder(LawModels::get().target(), law_options(), law_drafter(family));
  for (const LawCase& law_case : law_cases()) {
    SCOPED_TRACE(law_case.name);
    SamplingParams sampling = law_case.sampling;
    sampling.acceptance = acceptance;
    const ThreeTokens drawn = draw_three_tokens(decoder, sampling, kTexts, {1, kLawWidth});
    expect_law(drawn.counts, law_of_three_tokens(sampling), kOneIn10000);
    EXPECT_GT(drawn.accepted, kTexts / 5) << "the drafter took part";
    // Each draft that is reached is kept with the probability that its laws give: a variance of 1/4 at most.
    EXPECT_NEAR(static_cast<double>(drawn.accepted), drawn.expected,
                kOneIn10000 * std::sqrt(static_cast<double>(drawn.tested)) / 2);
  }
}
INSTANTIATE_TEST_SUITE_P(, TextLaw,
                         testing::Combine(testing::Values(TinyFamily::dflash, TinyFamily::dflash2, TinyFamily::dspark),
                                          testing::Values(AcceptanceRule::coupled, AcceptanceRule::ratio)),
                         [](const auto& suite) {
                           return name_of(std::get<0>(suite.param)) +
                                  (std::get<1>(suite.param) == AcceptanceRule::coupled ? "Coupled" : "Ratio");
                         });

// What the tests above compare with is a law, and rich enough to tell faults apart.
TEST(LawOfThreeTokens, IsWrittenDownInFull) {
  for (const LawCase& law_case : law_cases()) {
    const Law law = law_of_three_tokens(law_case.sampling);
    double total = 0;
    int64_t frequent = 0;
    for (const double p : law) {
      total += p;
      frequent += p * kTexts >= 5;
    }
    EXPECT_NEAR(total, 1.0, 1e-12) << law_case.name;
    EXPECT_GE(frequent, 30) << law_case.name;
  }
}

}  // namespace
}  // namespace blockdraft::test
