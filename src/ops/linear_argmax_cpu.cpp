#include <algorithm>
#include <array>

#include "ops/cpu/best.h"
#include "ops/cpu/linear_slice.h"
#include "ops/cpu/softcap.h"
#include "ops/linear_argmax.h"

namespace blockdraft::cpu {

namespace {

constexpr int64_t kRows = 64;  // at once; with more, the weights come out of memory again

constexpr int64_t kMostTasks = 128;

int64_t features_per_task(int64_t num_choices, int num_threads) {
  const int64_t lines = (num_choices + kMostTasks * kLineFeatures - 1) / (kMostTasks * kLineFeatures);
  return std::max(features_of_task(num_choices, num_threads), lines * kLineFeatures);
}

// The largest of each row that each task found: [tasks, rows], in memory of the arena.
int64_t floats_of_parts(int64_t tasks, int64_t rows) {
  static_assert(sizeof(Best) % sizeof(float) == 0 && alignof(Best) <= Arena::kAlignment);
  return tasks * rows * static_cast<int64_t>(sizeof(Best) / sizeof(float));
}

// The best of features [first, last) of each row of call.args.x: best[0], best[1], ...
void choose(Best* best, const LinearArgmaxArgs& args, LinearTask call, MultiplySlice multiply, int64_t first,
            int64_t last) {
  const int64_t rows = call.args.x.dim(0);
  const int64_t tile = features_of_tile(rows);
  alignas(64) std::array<float, kTileElements> memory;
  std::fill_n(best, rows, Best{.index = first});
  for (; first < last; first += tile) {
    const int64_t count = std::min(tile, last - first);
    call.args.out = view_f32(memory.data(), {rows, count});
    multiply(call, Slice{args.weight, first, count, 0});
    for (int64_t r = 0; r < rows; ++r) {
      float* values = call.args.out.row(r);
      if (args.multiplier != 1.0f || args.softcap > 0.0f) {
        scale_softcap_row(values, count, args.multiplier, args.softcap);
      }
      Best next = largest_with_index(values, 0, count);
      next.index += first;
      take(best[r], next);
    }
  }
}

}  // namespace

void linear_argmax(Context& context, const LinearArgmaxArgs& args) {
  const int64_t per_task = features_per_task(args.num_choices, context.threads->num_threads());
  const int64_t tasks = (args.num_choices + per_task - 1) / per_task;
  for (int64_t first_row = 0; first_row < args.x.dim(0); first_row += kRows) {
    const int64_t rows = std::min(kRows, args.x.dim(0) - first_row);
    const ArenaScope scope(*context.arena);
    const LinearArgs product{.x = rows_of(args.x, first_row, rows), .weights = {&args.weight, 1}};
    const LinearTask call = prepare_linear(context, product);
    const MultiplySlice multiply = multiply_for(context, product, args.weight);
    auto* parts = reinterpret_cast<Best*>(context.arena->take_f32({floats_of_parts(tasks, rows)}).f32());
    context.threads->parallel_for(tasks, [&](int64_t task, int) {
      const int64_t first = task * per_task;
      choose(parts + task * rows, args, call, multiply, first, std::min(args.num_choices, first + per_task));
    });
    for (int64_t r = 0; r < rows; ++r) args.ids[first_row + r] = merge(parts + r, tasks, rows);
  }
}

}  // namespace blockdraft::cpu

namespace blockdraft {

size_t linear_argmax_scratch_bytes(int64_t rows, int64_t in_features) {
  const int64_t at_once = std::min(rows, cpu::kRows);
  return linear_scratch_bytes(at_once, in_features) + arena_bytes_f32(cpu::floats_of_parts(cpu::kMostTasks, at_once));
}

}  // namespace blockdraft
