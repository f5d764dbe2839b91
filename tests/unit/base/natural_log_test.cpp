#include "base/natural_log.h"

#include <cmath>
#include <random>

#include <gtest/gtest.h>

namespace blockdraft {
namespace {

void expect_close(double x) {
  const double expected = std::log(x);
  const double unit = std::nextafter(std::abs(expected), HUGE_VAL) - std::abs(expected);
  EXPECT_NEAR(natural_log(x), expected, 2.5 * unit) << std::hexfloat << x;
}

TEST(NaturalLog, IsWithinTwoUnitsInTheLastPlace) {
  std::mt19937_64 generator(1);
  std::uniform_real_distribution<double> uniform(0.0, 1.0);
  for (int i = 0; i < 100000; ++i) {
    const double u = uniform(generator);
    if (u > 0.0) expect_close(u);
    expect_close(1.0 - u * 0x1p-20);
    expect_close(std::ldexp(1.0 + u, static_cast<int>(generator() % 2000) - 1000));
  }
  EXPECT_EQ(natural_log(1.0), 0.0);
  expect_close(0x1p-33);
  expect_close(1.0 - 0x1p-33);
}

// Numbers of a draw may not depend on the machine: these bits are part of what a seed means.
TEST(NaturalLog, HasTheSameBitsEverywhere) {
  static_assert(natural_log(0.5) == -0x1.62e42fefa39efp-1);
  EXPECT_EQ(natural_log(3.0), 0x1.193ea7aad030bp+0);
}

}  // namespace
}  // namespace blockdraft
