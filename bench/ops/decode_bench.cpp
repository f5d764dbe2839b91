// Stored weights to float32, out of the first-level cache.
#include <benchmark/benchmark.h>

#include "bench_context.h"
#include "ops/cpu/decode.h"

namespace blockdraft {
namespace {

void decode_run(benchmark::State& state, DType dtype) {
  constexpr int64_t kCount = 512;
  std::vector<std::byte> codes(kCount * size_of(dtype));
  std::mt19937 generator(1);
  for (std::byte& code : codes) code = static_cast<std::byte>(0x20 + generator() % 32);
  std::vector<float> values(kCount);
  for (auto _ : state) {
    cpu::decode_codes(dtype, codes.data(), kCount, values.data());
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * kCount);
}
BENCHMARK_CAPTURE(decode_run, f8_e4m3, DType::f8_e4m3)->Name("decode/F8_E4M3");
BENCHMARK_CAPTURE(decode_run, bf16, DType::bf16)->Name("decode/BF16");
BENCHMARK_CAPTURE(decode_run, f16, DType::f16)->Name("decode/F16");
BENCHMARK_CAPTURE(decode_run, f32, DType::f32)->Name("decode/F32");

}  // namespace
}  // namespace blockdraft
