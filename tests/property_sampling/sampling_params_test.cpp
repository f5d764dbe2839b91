#include "verify/sampling_params.h"

#include <cmath>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace blockdraft {
namespace {

using ::testing::HasSubstr;

TEST(SamplingParams, NamesTheFieldThatIsOutOfRange) {
  const std::vector<std::pair<SamplingParams, std::string>> cases = {
      {{.temperature = -0.1f}, "temperature is -0.1, expected 0 to 100"},
      {{.temperature = NAN}, "temperature is nan"},
      {{.temperature = INFINITY}, "temperature is inf"},
      {{.top_k = -1}, "top_k is -1, expected 0 (off) or more"},
      {{.top_p = 0.0f}, "top_p is 0, expected more than 0 and at most 1"},
      {{.top_p = 1.5f}, "top_p is 1.5"},
      {{.min_p = -0.5f}, "min_p is -0.5, expected 0 to 1"},
      {{.repetition_penalty = 0.0f}, "repetition_penalty is 0"},
      {{.presence_penalty = 2.5f}, "presence_penalty is 2.5, expected -2 to 2"},
      {{.frequency_penalty = -3.0f}, "frequency_penalty is -3"},
      {{.logit_bias = {{10, 1.0f}}}, "logit_bias: id is 10, expected 0 to 9"},
      {{.logit_bias = {{-1, 1.0f}}}, "logit_bias: id is -1"},
      {{.logit_bias = {{3, 101.0f}}}, "logit_bias of id 3 is 101, expected -100 to 100"},
      {{.logit_bias = {{3, 1.0f}, {4, 1.0f}, {3, 2.0f}}}, "logit_bias: id 3 is given twice"},
  };
  for (const auto& [params, message] : cases) {
    const Status status = check_sampling(params, 10);
    ASSERT_FALSE(status) << message;
    EXPECT_EQ(status.error().code, Code::invalid_argument);
    EXPECT_THAT(status.error().message, HasSubstr(message));
  }
  EXPECT_TRUE(check_sampling({}, 10));
  EXPECT_TRUE(check_sampling({.temperature = 2.0f, .top_k = 1000, .top_p = 1.0f, .min_p = 1.0f}, 10));
}

TEST(SamplingParams, AVerySmallTemperatureIsGreedy) {
  EXPECT_FALSE(SamplingParams{.temperature = 0.9e-5f}.draws());
  EXPECT_TRUE(SamplingParams{.temperature = 1.1e-5f}.draws());
  EXPECT_TRUE((SamplingParams{.temperature = 0.9e-5f, .acceptance = AcceptanceRule::ratio}.is_plain()));
  EXPECT_FALSE((SamplingParams{.presence_penalty = 0.1f}.is_plain()));
  EXPECT_EQ(sampling_of_row({.temperature = 0.9e-5f}, 3).temperature, 0.0f);
}

}  // namespace
}  // namespace blockdraft
