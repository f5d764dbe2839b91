// The greedy choice over the demo vocabulary and over that of Qwen3.
#include <benchmark/benchmark.h>

#include "bench_context.h"
#include "ops/argmax.h"

namespace blockdraft {
namespace {

// Arguments: rows, choices, threads.
void run(benchmark::State& state) {
  const int64_t rows = state.range(0);
  const int64_t choices = state.range(1);
  bench::BenchContext context(static_cast<int>(state.range(2)));
  const auto logits = bench::random_floats(rows * choices);
  std::vector<int32_t> ids(static_cast<size_t>(rows));
  for (auto _ : state) {
    argmax(context, ids.data(), view_f32(logits.data(), Shape{rows, choices}), choices);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * rows * choices * 4);
}
BENCHMARK(run)
    ->Name("argmax")
    ->ArgNames({"rows", "choices", "threads"})
    ->ArgsProduct({{1, 8}, {4160, 151936}, {1, 2}})
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace blockdraft
