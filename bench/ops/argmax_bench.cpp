// The greedy choice over the demo vocabulary and over that of Qwen3, from logits and from hidden rows.
#include <benchmark/benchmark.h>

#include "bench_context.h"
#include "ops/argmax.h"
#include "ops/linear.h"
#include "ops/linear_argmax.h"

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

// The head of the demo target and of a 0.6B model, in BF16: a product and the argmax of its rows, or both in one.
// Arguments: rows, vocabulary, hidden, 1 for both in one; 2 threads.
void run_head(benchmark::State& state) {
  const int64_t rows = state.range(0);
  const int64_t vocab = state.range(1);
  const int64_t hidden = state.range(2);
  bench::BenchContext context(2);
  std::vector<uint16_t> codes(static_cast<size_t>(vocab * hidden));
  std::mt19937 generator(1);
  for (uint16_t& code : codes) code = static_cast<uint16_t>(0x3c00 + (generator() & 0x80ff));
  const WeightView weight{reinterpret_cast<const std::byte*>(codes.data()), DType::bf16, vocab, hidden};
  const auto x = bench::random_floats(rows * hidden);
  Buffer logits = bench::zeros(rows * vocab);
  std::vector<int32_t> ids(static_cast<size_t>(rows));
  for (auto _ : state) {
    if (state.range(3) == 1) {
      linear_argmax(
          context,
          {.ids = ids.data(), .x = view_f32(x.data(), {rows, hidden}), .weight = weight, .num_choices = vocab});
    } else {
      const TensorView z = view_f32(logits.f32(), {rows, vocab});
      linear(context, {.out = z, .x = view_f32(x.data(), {rows, hidden}), .weights = {&weight, 1}});
      argmax(context, ids.data(), z, vocab);
    }
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * vocab * hidden * 2);
}
void heads(benchmark::internal::Benchmark* bench) {
  for (const int64_t rows : {1, 5, 16}) {
    for (const int64_t fused : {0, 1}) bench->Args({rows, 4160, 384, fused});
    for (const int64_t fused : {0, 1}) bench->Args({rows, 151936, 1024, fused});
  }
}
BENCHMARK(run_head)
    ->Name("head_argmax")
    ->ArgNames({"rows", "vocab", "hidden", "in_one"})
    ->Apply(heads)
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace blockdraft
