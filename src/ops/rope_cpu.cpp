#include <cmath>

#include "ops/cpu/parallel.h"
#include "ops/rope.h"

namespace blockdraft::cpu {

namespace {
constexpr int64_t kTrigonometryCost = 20;  // a sine and a cosine, in multiplications
}

void rope_table(Context& context, TensorView table, const int32_t* positions, ConstTensorView inv_freq,
                float attention_factor) {
  const int64_t half = inv_freq.dim(0);
  for_each_row(context, table.dim(0), half * kTrigonometryCost, [&](int64_t r) {
    const auto position = static_cast<float>(positions[r]);
    float* cosines = table.row(r);
    float* sines = cosines + half;
    for (int64_t i = 0; i < half; ++i) {
      const float angle = position * inv_freq.f32()[i];
      cosines[i] = std::cos(angle) * attention_factor;
      sines[i] = std::sin(angle) * attention_factor;
    }
  });
}

void rope(Context& context, TensorView x, ConstTensorView table) {
  const int64_t half = table.dim(1) / 2;
  for_each_row(context, x.dim(0), x.dim(1), [&](int64_t r) {
    const float* cosines = table.row(r);
    const float* sines = cosines + half;
    for (int64_t first = 0; first < x.dim(1); first += 2 * half) {
      float* low = x.row(r) + first;
      float* high = low + half;
      for (int64_t i = 0; i < half; ++i) {
        const float a = low[i];
        const float b = high[i];
        low[i] = a * cosines[i] - b * sines[i];
        high[i] = b * cosines[i] + a * sines[i];
      }
    }
  });
}

}  // namespace blockdraft::cpu
