#include <cmath>

#include "ops/activation.h"
#include "ops/cpu/parallel.h"

namespace blockdraft::cpu {

namespace {
constexpr int64_t kExpCost = 8;  // an exponential or tanh, in multiplications

float sigmoid(float x) { return 1.0f / (1.0f + std::exp(-x)); }

}  // namespace

void silu_mul(Context& context, TensorView out, ConstTensorView gate_up) {
  const int64_t inner = out.dim(1);
  for_each_row(context, out.dim(0), inner * kExpCost, [&](int64_t r) {
    const float* gate = gate_up.row(r);
    const float* up = gate + inner;
    float* result = out.row(r);
    for (int64_t i = 0; i < inner; ++i) result[i] = gate[i] / (1.0f + std::exp(-gate[i])) * up[i];
  });
}

void scale_softcap(Context& context, TensorView z, float multiplier, float softcap) {
  const int64_t columns = z.dim(1);
  const int64_t cost = softcap > 0.0f ? kExpCost : 1;
  for_each_row(context, z.dim(0), columns * cost, [&](int64_t r) {
    float* values = z.row(r);
    for (int64_t i = 0; i < columns; ++i) values[i] *= multiplier;
    if (softcap == 0.0f) return;
    for (int64_t i = 0; i < columns; ++i) values[i] = std::tanh(values[i] / softcap) * softcap;
  });
}

void accumulate(Context& context, TensorView out, ConstTensorView x) {
  const int64_t columns = out.dim(1);
  for_each_row(context, out.dim(0), columns, [&](int64_t r) {
    for (int64_t i = 0; i < columns; ++i) out.row(r)[i] += x.row(r)[i];
  });
}

void sigmoid_mul(Context& context, TensorView out, ConstTensorView gate, ConstTensorView x) {
  const int64_t columns = out.dim(1);
  for_each_row(context, out.dim(0), columns * kExpCost, [&](int64_t r) {
    for (int64_t i = 0; i < columns; ++i) out.row(r)[i] = sigmoid(gate.row(r)[i]) * x.row(r)[i];
  });
}

void gated_recurrence(Context& context, TensorView state, TensorView out, ConstTensorView joint) {
  const int64_t columns = out.dim(1);
  for_each_row(context, out.dim(0), 3 * columns * kExpCost, [&](int64_t r) {
    const float* gate = joint.row(r);
    const float* candidate = gate + columns;
    const float* output = candidate + columns;
    for (int64_t i = 0; i < columns; ++i) {
      const float keep = sigmoid(gate[i]);
      state.row(r)[i] = keep * state.row(r)[i] + (1.0f - keep) * std::tanh(candidate[i]);
      out.row(r)[i] = std::tanh(output[i]);
    }
  });
}

}  // namespace blockdraft::cpu
