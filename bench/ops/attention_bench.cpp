// Attention of the demo target (6 heads on 2) and of a 0.6B model (16 heads on 8), one sequence.
#include <numeric>

#include <benchmark/benchmark.h>

#include "bench_context.h"
#include "ops/attention.h"

namespace blockdraft {
namespace {

// Arguments: rows, position of the first row, threads.
void run(benchmark::State& state, int32_t num_heads, int32_t num_kv_heads, int32_t head_dim) {
  const auto rows = static_cast<int32_t>(state.range(0));
  const auto first = static_cast<int32_t>(state.range(1));
  bench::BenchContext context(static_cast<int>(state.range(2)));
  const int32_t num_pages = (first + rows) / kPageSize + 1;
  auto k = bench::random_floats(int64_t{num_pages} * num_kv_heads * kPageSize * head_dim);
  auto v = k;
  const auto q = bench::random_floats(int64_t{rows} * num_heads * head_dim);
  auto out = q;
  std::vector<int32_t> pages(static_cast<size_t>(num_pages));
  std::iota(pages.begin(), pages.end(), 0);
  std::vector<int32_t> positions(static_cast<size_t>(rows));
  std::iota(positions.begin(), positions.end(), first);
  const int32_t first_row[] = {0, rows};
  const Shape shape{rows, int64_t{num_heads} * head_dim};
  for (auto _ : state) {
    attention(context, {.out = view_f32(out.data(), shape),
                        .q = view_f32(q.data(), shape),
                        .kv = {k.data(), v.data(), num_pages, num_kv_heads, head_dim},
                        .batch = {.num_rows = rows,
                                  .num_sequences = 1,
                                  .positions = positions.data(),
                                  .first_row = first_row,
                                  .page_tables = pages.data(),
                                  .page_table_stride = num_pages},
                        .num_heads = num_heads,
                        .scale = 0.125f});
    benchmark::ClobberMemory();
  }
  const double flops = 4.0 * rows * (first + rows / 2.0) * num_heads * head_dim;
  state.counters["flops"] = benchmark::Counter(flops, benchmark::Counter::kIsIterationInvariantRate);
}

void demo(benchmark::State& state) { run(state, 6, 2, 64); }
void qwen3(benchmark::State& state) { run(state, 16, 8, 128); }

void arguments(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"rows", "position", "threads"})
      ->ArgsProduct({{1, 8, 16}, {256, 2048, 16384}, {1, 2}})
      ->Unit(benchmark::kMicrosecond);
}
BENCHMARK(demo)->Name("attention/demo")->Apply(arguments);
BENCHMARK(qwen3)->Name("attention/qwen3_0.6b")->Apply(arguments);

}  // namespace
}  // namespace blockdraft
