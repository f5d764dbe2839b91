// Matrix products of the demo pair and of a 0.6B model. "weights" is the rate at which stored bytes are used up.
#include <benchmark/benchmark.h>

#include "bench_context.h"
#include "ops/linear.h"

namespace blockdraft {
namespace {

struct Weights {
  std::vector<std::byte> bytes;
  std::vector<float> scales;
  std::vector<WeightView> views;

  Weights(DType dtype, int64_t in_features, const std::vector<int64_t>& out_features) {
    int64_t rows = 0;
    for (const int64_t n : out_features) rows += n;
    bytes.resize(static_cast<size_t>(rows * in_features) * size_of(dtype));
    std::mt19937 generator(1);
    // Bytes 0x20 .. 0x3f: ordinary finite numbers in every type.
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(0x20 + generator() % 32);
    scales.assign(static_cast<size_t>(rows), 0.01f);
    int64_t first = 0;
    for (const int64_t n : out_features) {
      WeightView view{bytes.data(), dtype, n, in_features};
      view.data = view.row(first);
      if (dtype == DType::f8_e4m3) view.row_scales = scales.data() + first;
      views.push_back(view);
      first += n;
    }
  }
};

// Arguments: rows, threads.
void run(benchmark::State& state, DType dtype, int64_t in_features, const std::vector<int64_t>& out_features) {
  const int64_t rows = state.range(0);
  bench::BenchContext context(static_cast<int>(state.range(1)));
  const Weights weights(dtype, in_features, out_features);
  int64_t columns = 0;
  int64_t weight_bytes = 0;
  for (const WeightView& view : weights.views) {
    columns += view.out_features;
    weight_bytes += view.size_bytes();
  }
  const auto x = bench::random_floats(rows * in_features);
  Buffer out = bench::zeros(rows * columns);
  for (auto _ : state) {
    linear(context, {.out = view_f32(out.f32(), Shape{rows, columns}),
                     .x = view_f32(x.data(), Shape{rows, in_features}),
                     .weights = weights.views});
    benchmark::ClobberMemory();
  }
  using benchmark::Counter;
  const auto flops = static_cast<double>(2 * rows * columns * in_features);
  state.counters["flops"] = Counter(flops, Counter::kIsIterationInvariantRate, Counter::kIs1000);
  state.counters["weights"] = Counter(static_cast<double>(weight_bytes), Counter::kIsIterationInvariantRate);
}

void register_shape(const char* name, DType dtype, int64_t in_features, const std::vector<int64_t>& out_features) {
  auto* bench =
      benchmark::RegisterBenchmark((std::string("linear/") + name + "/" + name_of(dtype)).c_str(),
                                   [=](benchmark::State& state) { run(state, dtype, in_features, out_features); });
  bench->ArgNames({"rows", "threads"})->Unit(benchmark::kMicrosecond);
  for (const int64_t threads : {1, 2}) {
    for (const int64_t rows : {1, 4, 8, 16}) bench->Args({rows, threads});
  }
}

const bool registered = [] {
  for (const DType dtype : {DType::f8_e4m3, DType::bf16}) {
    register_shape("demo_qkv", dtype, 384, {384, 128, 128});
    register_shape("demo_gate_up", dtype, 384, {1024, 1024});
    register_shape("demo_down", dtype, 1024, {384});
    register_shape("qwen3_0.6b_mlp", dtype, 1024, {3072});
  }
  register_shape("demo_head", DType::bf16, 384, {4160});
  return true;
}();

// Every product of the demo target for some rows: eight layers and the head.
void demo_target_pass(benchmark::State& state) {
  const int64_t rows = state.range(0);
  bench::BenchContext context(static_cast<int>(state.range(1)));
  std::vector<Weights> weights;
  for (int layer = 0; layer < 8; ++layer) {
    weights.emplace_back(DType::f8_e4m3, 384, std::vector<int64_t>{384, 128, 128});
    weights.emplace_back(DType::f8_e4m3, 384, std::vector<int64_t>{384});
    weights.emplace_back(DType::f8_e4m3, 384, std::vector<int64_t>{1024, 1024});
    weights.emplace_back(DType::f8_e4m3, 1024, std::vector<int64_t>{384});
  }
  weights.emplace_back(DType::bf16, 384, std::vector<int64_t>{4160});
  const auto x = bench::random_floats(rows * 1024);
  Buffer out = bench::zeros(rows * 4160);
  for (auto _ : state) {
    for (const Weights& weight : weights) {
      int64_t columns = 0;
      for (const WeightView& view : weight.views) columns += view.out_features;
      linear(context, {.out = view_f32(out.f32(), Shape{rows, columns}),
                       .x = view_f32(x.data(), Shape{rows, weight.views[0].in_features}),
                       .weights = weight.views});
    }
    benchmark::ClobberMemory();
  }
}
BENCHMARK(demo_target_pass)
    ->ArgNames({"rows", "threads"})
    ->ArgsProduct({{1, 4, 8, 16}, {1, 2}})
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace blockdraft
