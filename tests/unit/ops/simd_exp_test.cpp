#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "base/cpu_isa.h"
#include "exp_row.h"

namespace blockdraft {
namespace {

using ExpRow = void (*)(float*, int64_t);

struct Path {
  CpuIsa isa;
  ExpRow exp_row;
};

// The paths that have one and that this processor can run.
std::vector<Path> paths() {
  std::vector<Path> all;
#if defined(__x86_64__)
  for (const Path& path : {Path{CpuIsa::avx2, test::exp_row_avx2}, Path{CpuIsa::avx512, test::exp_row_avx512}}) {
    if (path.isa <= best_cpu_isa()) all.push_back(path);
  }
#endif
  return all;
}

void expect_accurate(const Path& path, std::vector<float> x) {
  const std::vector<float> before = x;
  path.exp_row(x.data(), static_cast<int64_t>(x.size()));
  for (size_t i = 0; i < x.size(); ++i) {
    const double expected = std::exp(static_cast<double>(before[i]));
    const double half_spacing = 0.5 * static_cast<double>(std::numeric_limits<float>::denorm_min());
    if (expected >= std::ldexp(1.0, 128)) {
      ASSERT_TRUE(std::isinf(x[i]) && x[i] > 0.0f) << before[i];
    } else {
      ASSERT_NEAR(static_cast<double>(x[i]), expected, 2e-7 * expected + 1.01 * half_spacing)
          << name_of(path.isa) << " " << before[i];
    }
  }
}

TEST(SimdExp, IsAccurateOverTheWholeRange) {
  if (paths().empty()) GTEST_SKIP() << "this processor has no path with an exponential of its own";
  for (const Path& path : paths()) {
    std::vector<float> x;
    for (int i = 0; i < 2'000'003; ++i) x.push_back(-120.0f + 240.0f * static_cast<float>(i) / 2'000'003.0f);
    expect_accurate(path, x);
    // Every magnitude: 64 numbers of each exponent, of both signs.
    x.clear();
    for (uint32_t bits = 0; bits < 0x7f800000u; bits += 1u << 17) {
      for (const uint32_t sign : {0u, 0x80000000u}) x.push_back(std::bit_cast<float>((bits | sign) + 12345u));
    }
    expect_accurate(path, x);
  }
}

TEST(SimdExp, IsExactAtItsEnds) {
  if (paths().empty()) GTEST_SKIP() << "this processor has no path with an exponential of its own";
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const Path& path : paths()) {
    std::vector<float> x{0.0f, -0.0f, -105.0f, -1e30f, -kInfinity, 90.0f, 1e30f, kInfinity, std::nanf("")};
    path.exp_row(x.data(), static_cast<int64_t>(x.size()));
    EXPECT_EQ(x[0], 1.0f);
    EXPECT_EQ(x[1], 1.0f);
    for (size_t i = 2; i < 5; ++i) EXPECT_EQ(std::bit_cast<uint32_t>(x[i]), 0u) << i;
    for (size_t i = 5; i < 8; ++i) EXPECT_EQ(x[i], kInfinity) << i;
    EXPECT_TRUE(std::isnan(x[8]));
  }
}

}  // namespace
}  // namespace blockdraft
