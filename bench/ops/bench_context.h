// What an op needs to run in a benchmark.
#pragma once

#include <random>
#include <vector>

#include "tensor/context.h"

namespace blockdraft::bench {

class BenchContext {
 public:
  explicit BenchContext(int num_threads)
      : pool_(num_threads),
        arena_(Buffer::allocate(size_t{64} << 20, "benchmark arena").value()),
        context_{&pool_, &arena_, choose_cpu_isa().value()} {}
  operator Context&() { return context_; }  // NOLINT(google-explicit-constructor)

 private:
  ThreadPool pool_;
  Arena arena_;
  Context context_;
};

inline std::vector<float> random_floats(int64_t count) {
  std::mt19937 generator(1);
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = normal(generator);
  return values;
}

// Aligned as the activations of a model are: threads that write neighbouring columns do not share cache lines.
inline Buffer zeros(int64_t count) {
  return Buffer::allocate(static_cast<size_t>(count) * sizeof(float), "benchmark output").value();
}

}  // namespace blockdraft::bench
