// Matrix products of the demo pair and of a 0.6B model, the weights packed as an engine packs them. "weights" is the
// rate at which stored bytes are used up.
#include <cstring>
#include <string>

#include <benchmark/benchmark.h>

#include "bench_context.h"
#include "nn/weight_packs.h"
#include "ops/linear.h"

namespace blockdraft {
namespace {

struct Weights {
  Buffer bytes;
  std::vector<float> scales;
  std::vector<WeightView> views;

  Weights(DType dtype, int64_t in_features, const std::vector<int64_t>& out_features) {
    int64_t size = 0;
    for (const int64_t n : out_features) {
      views.push_back({nullptr, dtype, n, in_features});
      views.back().is_packed = wants_packs(choose_cpu_isa().value(), views.back());
      size += views.back().size_bytes();
      scales.resize(scales.size() + static_cast<size_t>(n), 0.01f);
    }
    bytes = allocate_packs(static_cast<size_t>(size), "benchmark weights").value();
    fill(bytes);
    const auto* data = static_cast<const std::byte*>(bytes.data());
    const float* scale = scales.data();
    for (WeightView& view : views) {
      view.data = data;
      data += view.size_bytes();
      if (dtype == DType::f8_e4m3) view.row_scales = scale;
      scale += view.out_features;
    }
  }

  // Bytes 0x20 .. 0x3f: ordinary finite numbers in every type.
  static void fill(Buffer& buffer) {
    std::mt19937 generator(1);
    auto* bytes = static_cast<std::byte*>(buffer.data());
    for (size_t at = 0; at + 4 <= buffer.size_bytes(); at += 4) {
      const auto four = static_cast<uint32_t>((generator() & 0x1f1f1f1fu) | 0x20202020u);
      std::memcpy(bytes + at, &four, sizeof(four));
    }
  }

  int64_t size_bytes() const {
    int64_t size = 0;
    for (const WeightView& view : views) size += view.size_bytes();
    return size;
  }
  int64_t columns() const {
    int64_t sum = 0;
    for (const WeightView& view : views) sum += view.out_features;
    return sum;
  }
};

// Whether a benchmark uses one copy of its weights, which then may stay in a cache, or copies in turn, so that all come
// out of memory as in a model that is larger than the caches.
enum class Copies { one, many };
constexpr int64_t kBytesOfMany = int64_t{160} << 20;

// Arguments: rows, threads.
void run(benchmark::State& state, DType dtype, int64_t in_features, const std::vector<int64_t>& out_features,
         Copies copies) {
  const int64_t rows = state.range(0);
  bench::BenchContext context(static_cast<int>(state.range(1)));
  std::vector<Weights> weights;
  weights.emplace_back(dtype, in_features, out_features);
  const int64_t weight_bytes = weights[0].size_bytes();
  for (int64_t bytes = weight_bytes; copies == Copies::many && bytes < kBytesOfMany; bytes += weight_bytes) {
    weights.emplace_back(dtype, in_features, out_features);
  }
  const int64_t columns = weights[0].columns();
  const auto x = bench::random_floats(rows * in_features);
  Buffer out = bench::zeros(rows * columns);
  size_t turn = 0;
  for (auto _ : state) {
    linear(context, {.out = view_f32(out.f32(), Shape{rows, columns}),
                     .x = view_f32(x.data(), Shape{rows, in_features}),
                     .weights = weights[turn].views});
    turn = (turn + 1) % weights.size();
    benchmark::ClobberMemory();
  }
  using benchmark::Counter;
  const auto flops = static_cast<double>(2 * rows * columns * in_features);
  state.counters["flops"] = Counter(flops, Counter::kIsIterationInvariantRate, Counter::kIs1000);
  state.counters["weights"] = Counter(static_cast<double>(weight_bytes), Counter::kIsIterationInvariantRate);
}

void register_shape(const char* name, DType dtype, int64_t in_features, const std::vector<int64_t>& out_features,
                    Copies copies = Copies::one) {
  auto* bench = benchmark::RegisterBenchmark(
      (std::string("linear/") + name + "/" + name_of(dtype)).c_str(),
      [=](benchmark::State& state) { run(state, dtype, in_features, out_features, copies); });
  bench->ArgNames({"rows", "threads"})->Unit(benchmark::kMicrosecond);
  for (const int64_t threads : {1, 2}) {
    for (const int64_t rows : {1, 2, 4, 5, 8, 16}) bench->Args({rows, threads});
  }
}

const bool registered = [] {
  for (const DType dtype : {DType::i8, DType::f8_e4m3, DType::bf16}) {
    register_shape("demo_qkv", dtype, 384, {384, 128, 128});
    register_shape("demo_gate_up", dtype, 384, {1024, 1024});
    register_shape("demo_down", dtype, 1024, {384});
    register_shape("qwen3_0.6b_mlp", dtype, 1024, {3072}, Copies::many);
    register_shape("qwen3_0.6b_down", dtype, 3072, {1024}, Copies::many);
    register_shape("qwen3_0.6b_head", dtype, 1024, {151936}, Copies::many);
    register_shape("demo_head", dtype, 384, {4160});
  }
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
