#include <cmath>

#include "ops/activation.h"
#include "ops/cpu/parallel.h"
#include "ops/cpu/silu_row.h"
#include "ops/cpu/softcap.h"

namespace blockdraft::cpu {

namespace {
constexpr int64_t kExpCost = 20;       // an exponential or tanh of the C library, in multiplications
constexpr int64_t kVectorExpCost = 3;  // one of a vector of them

float sigmoid(float x) { return 1.0f / (1.0f + std::exp(-x)); }

void silu_mul_row_portable(float* out, const float* gate, const float* up, int64_t count) {
  for (int64_t i = 0; i < count; ++i) out[i] = gate[i] / (1.0f + std::exp(-gate[i])) * up[i];
}

}  // namespace

SiluMulRow silu_mul_row_for(CpuIsa isa) {
#if defined(__x86_64__)
  if (isa >= CpuIsa::avx512) return silu_mul_row_avx512;
  if (isa >= CpuIsa::avx2) return silu_mul_row_avx2;
#endif
  CHECK(isa == CpuIsa::portable);
  return silu_mul_row_portable;
}

void silu_mul(Context& context, TensorView out, ConstTensorView gate_up) {
  const int64_t inner = out.dim(1);
  const SiluMulRow silu_mul_row = silu_mul_row_for(context.isa);
  const int64_t cost = context.isa == CpuIsa::portable ? kExpCost : kVectorExpCost;
  for_each_row(context, out.dim(0), inner * cost, [&](int64_t r) {
    const float* gate = gate_up.row(r);
    silu_mul_row(out.row(r), gate, gate + inner, inner);
  });
}

void scale_softcap_row(float* values, int64_t count, float multiplier, float softcap) {
  for (int64_t i = 0; i < count; ++i) values[i] *= multiplier;
  if (softcap == 0.0f) return;
  for (int64_t i = 0; i < count; ++i) values[i] = std::tanh(values[i] / softcap) * softcap;
}

void scale_softcap(Context& context, TensorView z, float multiplier, float softcap) {
  const int64_t columns = z.dim(1);
  const int64_t cost = softcap > 0.0f ? kExpCost : 1;
  for_each_row(context, z.dim(0), columns * cost,
               [&](int64_t r) { scale_softcap_row(z.row(r), columns, multiplier, softcap); });
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
