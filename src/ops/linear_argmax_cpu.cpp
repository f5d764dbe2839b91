#include <algorithm>
#include <array>

#include "ops/cpu/best.h"
#include "ops/cpu/linear_slice.h"
#include "ops/cpu/softcap.h"
#include "ops/linear_argmax.h"

namespace blockdraft::cpu {

namespace {

constexpr int64_t kRows = 64;            // at once; with more, the weights come out of memory again
constexpr int64_t kMostTasks = 128;      // so that the partial results fit on the stack
constexpr int64_t kTasksPerThread = 6;   // as linear() has
constexpr int64_t kTileElements = 4096;  // of z at a time, in the first-level cache
constexpr int64_t kMostTileFeatures = 512;

int64_t round_up(int64_t count, int64_t unit) { return (count + unit - 1) / unit * unit; }

int64_t features_per_task(int64_t num_choices, int num_threads) {
  const int64_t tasks = num_threads == 1 ? 1 : std::min(kMostTasks, kTasksPerThread * num_threads);
  return round_up((num_choices + tasks - 1) / tasks, kLineFeatures);
}

// The best of features [first, last) of each row of call.args.x: best[0], best[1], ...
void choose(Best* best, const LinearArgmaxArgs& args, LinearTask call, MultiplySlice multiply, int64_t first,
            int64_t last) {
  const int64_t rows = call.args.x.dim(0);
  const int64_t tile = std::min(kMostTileFeatures, kTileElements / rows / kLineFeatures * kLineFeatures);
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
  const int64_t num_tasks = (args.num_choices + per_task - 1) / per_task;
  std::array<Best, kRows * kMostTasks> parts;
  for (int64_t first_row = 0; first_row < args.x.dim(0); first_row += kRows) {
    const int64_t rows = std::min(kRows, args.x.dim(0) - first_row);
    const ArenaScope scope(*context.arena);
    const LinearArgs product{.x = rows_of(args.x, first_row, rows), .weights = {&args.weight, 1}};
    const LinearTask call = prepare_linear(context, product);
    const MultiplySlice multiply = multiply_for(context, product, args.weight);
    context.threads->parallel_for(num_tasks, [&](int64_t task, int) {
      const int64_t first = task * per_task;
      choose(parts.data() + task * kRows, args, call, multiply, first, std::min(args.num_choices, first + per_task));
    });
    for (int64_t r = 0; r < rows; ++r) args.ids[first_row + r] = merge(parts.data() + r, num_tasks, kRows);
  }
}

}  // namespace blockdraft::cpu

namespace blockdraft {

size_t linear_argmax_scratch_bytes(int64_t rows, int64_t in_features) {
  return linear_scratch_bytes(std::min(rows, cpu::kRows), in_features);
}

}  // namespace blockdraft
