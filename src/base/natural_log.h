// The natural logarithm, the same bits on every machine and card: nothing but products, sums and a division in one
// order. Within two units in the last place of the true value.
#pragma once

#include <cstdint>

#include "base/host_device.h"

namespace blockdraft {

// x = 2^e m with m between 1/sqrt(2) and sqrt(2), s = (m - 1) / (m + 1):
//   log(x) = e log(2) + 2 (s + s^3 / 3 + s^5 / 5 + ...)
// s^2 < 0.0295, so what follows s^21 / 21 is less than 2^-60 of the sum. Precondition: x positive, finite, not
// subnormal.
BLOCKDRAFT_HOST_DEVICE constexpr double natural_log(double x) {
  constexpr double kLog2High = 0x1.62e42fefap-1;  // few bits, so that a multiple by e is exact
  constexpr double kLog2Low = 0x1.cf79abc9e3b3ap-40;
  constexpr uint64_t kMantissa = (uint64_t{1} << 52) - 1;
  const auto bits = __builtin_bit_cast(uint64_t, x);
  int e = static_cast<int>(bits >> 52) - 1023;
  auto m = __builtin_bit_cast(double, (bits & kMantissa) | 0x3ff0000000000000);
  if (m > 1.4142135623730951) {
    m *= 0.5;
    ++e;
  }
  const double s = (m - 1.0) / (m + 1.0);
  const double z = s * s;
  double series = 0.0;
  for (int n = 21; n >= 3; n -= 2) series = (series + 1.0 / n) * z;
  const double twice = 2.0 * s;
  return e * kLog2High + (twice + (twice * series + e * kLog2Low));
}

}  // namespace blockdraft
