// The exponential function over a Simd struct (simd_math_avx512.h). Included like it.
#pragma once

namespace blockdraft::cpu {
namespace {

// e^x with a relative error below 2e-7 (of subnormal results: of their spacing); 1 at 0, 0 below -104, infinite above
// 88.73, NaN where x is. With n = x / ln 2 rounded, e^x = 2^n e^r, and in |r| <= ln 2 / 2 e^r is 1 + r + r^2 p(r), p
// the polynomial that agrees with it at the Chebyshev points.
template <class Simd>
typename Simd::Vec exp_of(typename Simd::Vec x) {
  x = Simd::min(Simd::broadcast(89.0f), Simd::max(Simd::broadcast(-104.0f), x));
  const auto n = Simd::round(Simd::multiply(x, Simd::broadcast(1.44269504f)));
  auto r = Simd::multiply_add(n, Simd::broadcast(-0.693147182f), x);
  r = Simd::multiply_add(n, Simd::broadcast(1.90465421e-9f), r);  // what ln 2 has beyond float32
  auto p = Simd::broadcast(0.00139261759f);
  p = Simd::multiply_add(p, r, Simd::broadcast(0.00836317334f));
  p = Simd::multiply_add(p, r, Simd::broadcast(0.0416665561f));
  p = Simd::multiply_add(p, r, Simd::broadcast(0.166665778f));
  p = Simd::multiply_add(p, r, Simd::broadcast(0.5f));
  p = Simd::multiply_add(p, Simd::multiply(r, r), r);
  return Simd::times_power_of_2(Simd::add(p, Simd::broadcast(1.0f)), n);
}

}  // namespace
}  // namespace blockdraft::cpu
