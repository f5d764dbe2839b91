// What it costs to run a loop on several threads.
#include <benchmark/benchmark.h>

#include "base/thread_pool.h"

namespace blockdraft {
namespace {

void empty_tasks(benchmark::State& state) {
  ThreadPool pool(static_cast<int>(state.range(0)));
  for (auto _ : state) {
    pool.parallel_for(state.range(1), [](int64_t index, int) { benchmark::DoNotOptimize(index); });
  }
}
BENCHMARK(empty_tasks)->Name("parallel_for")->ArgNames({"threads", "tasks"})->ArgsProduct({{1, 2}, {2, 24}});

}  // namespace
}  // namespace blockdraft
