// Loops over rows, split over the threads when there is enough to do.
#pragma once

#include <algorithm>
#include <cstdint>

#include "tensor/context.h"

namespace blockdraft::cpu {

// Work below this many multiplications, a microsecond or two, is done faster than another thread is told about it.
inline constexpr int64_t kElementsPerTask = 16384;

// Numbers that are rounded to BF16 or int8 in the time of a multiplication.
inline constexpr int64_t kRoundedAtOnce = 8;

// Calls body(row) for each row. A row costs about as much as row_elements multiplications.
template <class Body>
void for_each_row(Context& context, int64_t rows, int64_t row_elements, const Body& body) {
  const int64_t rows_per_task = std::max<int64_t>(1, kElementsPerTask / std::max<int64_t>(1, row_elements));
  const int64_t num_tasks = (rows + rows_per_task - 1) / rows_per_task;
  context.threads->parallel_for(num_tasks, [&](int64_t task, int) {
    const int64_t last = std::min(rows, (task + 1) * rows_per_task);
    for (int64_t row = task * rows_per_task; row < last; ++row) body(row);
  });
}

}  // namespace blockdraft::cpu
