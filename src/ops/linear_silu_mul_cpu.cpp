#include <algorithm>
#include <array>

#include "ops/cpu/linear_slice.h"
#include "ops/cpu/silu_row.h"
#include "ops/linear_silu_mul.h"

namespace blockdraft::cpu {

namespace {

constexpr int64_t kRows = 256;  // at once; with more, the weights come out of memory again

// Features [first, last) of out, for all rows of call.args.x.
void multiply_features(const Context& context, const LinearSiluMulArgs& args, TensorView out, LinearTask call,
                       SiluMulRow silu_mul_row, int64_t first, int64_t last) {
  const int64_t rows = out.dim(0);
  const int64_t tile = features_of_tile(rows);
  const MultiplySlice multiply_gate = multiply_for(context, call.args, args.gate);
  const MultiplySlice multiply_up = multiply_for(context, call.args, args.up);
  alignas(64) std::array<float, 2 * kTileElements> memory;
  for (; first < last; first += tile) {
    const int64_t count = std::min(tile, last - first);
    call.args.out = view_f32(memory.data(), {rows, 2 * count});
    multiply_gate(call, Slice{args.gate, first, count, 0});
    multiply_up(call, Slice{args.up, first, count, count});
    for (int64_t r = 0; r < rows; ++r) {
      const float* gate = call.args.out.row(r);
      silu_mul_row(out.row(r) + first, gate, gate + count, count);
    }
  }
}

}  // namespace

void linear_silu_mul(Context& context, const LinearSiluMulArgs& args) {
  const std::array weights{args.gate, args.up};
  const int64_t inner = args.out.dim(1);
  const int64_t per_task = features_of_task(inner, context.threads->num_threads());
  const SiluMulRow silu_mul_row = silu_mul_row_for(context.isa);
  for (int64_t first_row = 0; first_row < args.x.dim(0); first_row += kRows) {
    const int64_t rows = std::min(kRows, args.x.dim(0) - first_row);
    const ArenaScope scope(*context.arena);
    const TensorView out = rows_of(args.out, first_row, rows);
    const LinearArgs product{.x = rows_of(args.x, first_row, rows), .weights = weights};
    const LinearTask call = prepare_linear(context, product);
    context.threads->parallel_for((inner + per_task - 1) / per_task, [&](int64_t task, int) {
      const int64_t first = task * per_task;
      multiply_features(context, args, out, call, silu_mul_row, first, std::min(inner, first + per_task));
    });
  }
}

}  // namespace blockdraft::cpu
