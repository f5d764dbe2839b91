#include <gtest/gtest.h>

#include "ops/argmax.h"
#include "ops/sample.h"
#include "support/op_context.h"

namespace blockdraft {
namespace {

TEST(CandidateNoise, IsTheNoiseOfTheIdTimesTheTemperature) {
  test::OpContext context(2);
  const std::vector<RowSampling> rows{{.temperature = 0.5f, .noise = {.seed = 3, .position = 4}},
                                      {.temperature = 0.0f, .noise = {.seed = 3, .position = 5}},
                                      {.temperature = 1.0f, .noise = {.seed = 3, .position = 6}}};
  const std::vector<int32_t> candidates{7, 100, 4, 7, 100, 4, kNotANumber, kNotANumber, kNotANumber};
  test::Matrix noise(3, 3, 5);
  candidate_noise(context, noise.view(), candidates.data(), rows.data());
  EXPECT_TRUE(noise.gaps_untouched());
  for (int64_t c = 0; c < 3; ++c) {
    GumbelNoise gumbel(rows[0].noise);
    EXPECT_EQ(noise.row(0)[c], 0.5f * static_cast<float>(gumbel(candidates[static_cast<size_t>(c)])));
    EXPECT_EQ(noise.row(1)[c], 0.0f);
    EXPECT_EQ(noise.row(2)[c], 0.0f);
  }
}

}  // namespace
}  // namespace blockdraft
