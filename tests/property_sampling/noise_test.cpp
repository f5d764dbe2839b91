#include "base/noise.h"

#include <algorithm>
#include <cmath>
#include <set>

#include <gtest/gtest.h>

namespace blockdraft {
namespace {

// The known answers that were published with the generator.
TEST(Philox, GivesTheKnownAnswers) {
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr uint32_t kOnes = 0xffffffff;
  EXPECT_EQ(philox({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}),
            (PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (PhiloxCounter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Noise, UniformIsInsideTheOpenInterval) {
  EXPECT_GT(to_uniform(0), 0.0);
  EXPECT_LT(to_uniform(0xffffffff), 1.0);
}

TEST(Noise, EveryPartOfTheKeyMatters) {
  const NoiseKey key{.seed = 7, .choice = 1, .position = 20, .purpose = NoisePurpose::draft};
  std::set<double> numbers = {uniform_noise(key)};
  for (const NoiseKey& other :
       {NoiseKey{8, 1, 20, NoisePurpose::draft}, NoiseKey{7 + (uint64_t{1} << 32), 1, 20, NoisePurpose::draft},
        NoiseKey{7, 2, 20, NoisePurpose::draft}, NoiseKey{7, 1, 21, NoisePurpose::draft},
        NoiseKey{7, 1, 20, NoisePurpose::coupled}, NoiseKey{7, 1, 20, NoisePurpose::accept},
        NoiseKey{7, 1, 20, NoisePurpose::residual}, NoiseKey{7, 1, 20, NoisePurpose::bonus}}) {
    numbers.insert(uniform_noise(other));
  }
  EXPECT_EQ(numbers.size(), 9u);
}

TEST(Noise, GumbelNumbersDoNotDependOnTheOrderOfAsking) {
  GumbelNoise forward({.seed = 3, .position = 5});
  std::vector<double> numbers;
  for (int32_t id = 0; id < 40; ++id) numbers.push_back(forward(id));
  GumbelNoise backward({.seed = 3, .position = 5});
  for (int32_t id = 39; id >= 0; --id) EXPECT_EQ(backward(id), numbers[static_cast<size_t>(id)]);
  EXPECT_EQ(std::set<double>(numbers.begin(), numbers.end()).size(), numbers.size());
}

TEST(Noise, GumbelNumbersHaveTheMeanAndVarianceOfTheLaw) {
  constexpr int kDraws = 200000;
  constexpr double kMean = 0.57721566490153286;  // Euler's constant
  const double variance = std::acos(-1.0) * std::acos(-1.0) / 6;
  GumbelNoise noise({.seed = 11});
  double sum = 0;
  double squares = 0;
  double largest = 0;
  for (int32_t id = 0; id < kDraws; ++id) {
    const double value = noise(id);
    sum += value;
    squares += (value - kMean) * (value - kMean);
    largest = std::max(largest, value);
  }
  EXPECT_NEAR(sum / kDraws, kMean, 5 * std::sqrt(variance / kDraws));
  EXPECT_NEAR(squares / kDraws, variance, 0.04);
  EXPECT_LT(largest, GumbelNoise::kMax);
  EXPECT_LT(-std::log(-std::log(to_uniform(0xffffffff))), GumbelNoise::kMax);
}

}  // namespace
}  // namespace blockdraft
