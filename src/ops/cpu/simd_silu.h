// silu() over a Simd struct (simd_math_avx512.h). Included like it.
#pragma once

#include "ops/cpu/simd_exp.h"

namespace blockdraft::cpu {
namespace {

// x / (1 + exp(-x))
template <class Simd>
typename Simd::Vec silu_of(typename Simd::Vec x) {
  const auto exponential = exp_of<Simd>(Simd::subtract(Simd::zero(), x));
  return Simd::divide(x, Simd::add(Simd::broadcast(1.0f), exponential));
}

template <class Simd>
void silu_mul_row(float* out, const float* gate, const float* up, int64_t count) {
  int64_t i = 0;
  for (; i + Simd::kLanes <= count; i += Simd::kLanes) {
    Simd::store(out + i, Simd::multiply(silu_of<Simd>(Simd::load(gate + i)), Simd::load(up + i)));
  }
  if (i == count) return;
  const int64_t rest = count - i;
  const auto product = Simd::multiply(silu_of<Simd>(Simd::load_first(gate + i, rest)), Simd::load_first(up + i, rest));
  Simd::store_first(out + i, product, rest);
}

}  // namespace
}  // namespace blockdraft::cpu
