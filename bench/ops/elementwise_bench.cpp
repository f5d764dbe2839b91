// Norm, rotation and activation at the sizes of the demo target.
#include <benchmark/benchmark.h>

#include "bench_context.h"
#include "ops/activation.h"
#include "ops/rms_norm.h"
#include "ops/rope.h"

namespace blockdraft {
namespace {

void norm(benchmark::State& state) {
  const int64_t rows = state.range(0);
  bench::BenchContext context(1);
  const auto x = bench::random_floats(rows * 384);
  auto out = x;
  const auto weight = bench::random_floats(384);
  for (auto _ : state) {
    rms_norm(context, view_f32(out.data(), Shape{rows, 384}), view_f32(x.data(), Shape{rows, 384}),
             view_f32(weight.data(), Shape{384}), 1e-6f);
    benchmark::ClobberMemory();
  }
}
BENCHMARK(norm)->Name("rms_norm/384")->ArgName("rows")->Arg(1)->Arg(8);

void rotation(benchmark::State& state) {
  const int64_t rows = state.range(0);
  bench::BenchContext context(1);
  auto x = bench::random_floats(rows * 384);
  std::vector<float> table(static_cast<size_t>(rows * 64), 0.5f);
  for (auto _ : state) {
    rope(context, view_f32(x.data(), Shape{rows, 384}),
         view_f32(static_cast<const float*>(table.data()), Shape{rows, 64}));
    benchmark::ClobberMemory();
  }
}
BENCHMARK(rotation)->Name("rope/6x64")->ArgName("rows")->Arg(1)->Arg(8);

void silu(benchmark::State& state) {
  const int64_t rows = state.range(0);
  bench::BenchContext context(1);
  const auto gate_up = bench::random_floats(rows * 2048);
  std::vector<float> out(static_cast<size_t>(rows * 1024));
  for (auto _ : state) {
    silu_mul(context, view_f32(out.data(), Shape{rows, 1024}), view_f32(gate_up.data(), Shape{rows, 2048}));
    benchmark::ClobberMemory();
  }
}
BENCHMARK(silu)->Name("silu_mul/1024")->ArgName("rows")->Arg(1)->Arg(8);

}  // namespace
}  // namespace blockdraft
