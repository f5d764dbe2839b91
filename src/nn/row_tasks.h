// Loops over the rows of a weight while it is loaded, on the threads there are.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "ops/cpu/decode.h"
#include "tensor/weight_view.h"

namespace blockdraft {

// Calls body(i) for i < count, on all of the threads; without a pool in sequence.
template <class Body>
void for_each_task(ThreadPool* threads, int64_t count, const Body& body) {
  if (threads == nullptr) {
    for (int64_t i = 0; i < count; ++i) body(i);
  } else {
    threads->parallel_for(count, [&](int64_t i, int) { body(i); });
  }
}

// Calls use(row number, its values) for each row, in no order.
template <class Use>
void for_each_row(ThreadPool* threads, const WeightView& weight, const Use& use) {
  constexpr int64_t kRowsOfTask = 64;
  for_each_task(threads, (weight.out_features + kRowsOfTask - 1) / kRowsOfTask, [&](int64_t task) {
    std::vector<float> row(static_cast<size_t>(weight.in_features));
    const int64_t end = std::min(weight.out_features, (task + 1) * kRowsOfTask);
    for (int64_t n = task * kRowsOfTask; n < end; ++n) {
      cpu::decode_row(weight, n, row.data());
      use(static_cast<size_t>(n), std::span<const float>(row));
    }
  });
}

}  // namespace blockdraft
