#include <algorithm>
#include <span>

#include "base/check.h"
#include "ops/cpu/linear_slice.h"
#include "ops/cpu/parallel.h"
#include "ops/linear.h"

namespace blockdraft::cpu {

namespace {

constexpr int64_t kTasksPerThread = 6;  // few, so that threads seldom meet; enough to even out their speeds

// How the features of all weights are dealt out. This decides who computes what, never what comes out.
struct Split {
  std::span<const WeightView> weights;
  int64_t features_per_task;

  int64_t num_tasks(const WeightView& weight) const {
    return (weight.out_features + features_per_task - 1) / features_per_task;
  }
  int64_t num_tasks() const {
    int64_t sum = 0;
    for (const WeightView& weight : weights) sum += num_tasks(weight);
    return sum;
  }
  Slice slice(int64_t task) const {
    int64_t column = 0;
    size_t i = 0;
    for (; task >= num_tasks(weights[i]); ++i) {
      task -= num_tasks(weights[i]);
      column += weights[i].out_features;
    }
    const int64_t first = task * features_per_task;
    return {weights[i], first, std::min(features_per_task, weights[i].out_features - first), column + first};
  }
};

// AVX-512 without VNNI has nothing that beats AVX2 here.
MultiplySlice multiply_int8_for(CpuIsa isa) {
#if defined(__x86_64__)
  if (uses_avx512_vnni(isa)) return multiply_int8_vnni;
  if (isa >= CpuIsa::avx2) return multiply_int8_avx2;
#endif
  CHECK(isa == CpuIsa::portable);
  return multiply_int8_portable;
}

bool is_int8(const WeightView& weight) { return weight.dtype == DType::i8; }

// Whether products with this weight take x in BF16: its codes are BF16 exactly, so that products are exact in float32.
bool rounds_to_bf16(const Context& context, const LinearArgs& args, const WeightView& weight) {
  const bool is_exact = weight.dtype == DType::bf16 || weight.dtype == DType::f8_e4m3 || weight.dtype == DType::u8;
  return is_exact && args.rounds && context.isa >= CpuIsa::avx512_bf16;
}

}  // namespace

int64_t features_of_task(int64_t out_features, int num_threads) {
  return std::max<int64_t>(1, out_features / (kLineFeatures * kTasksPerThread * num_threads)) * kLineFeatures;
}

MultiplySlice multiply_for(const Context& context, const LinearArgs& args, const WeightView& weight) {
  if (is_int8(weight)) return multiply_int8_for(context.isa);
#if defined(__x86_64__)
  if (weight.is_packed) {
    CHECK(rounds_to_bf16(context, args, weight));
    return multiply_packs_bf16;
  }
  if (rounds_to_bf16(context, args, weight)) return multiply_avx512_bf16;
  if (context.isa >= CpuIsa::avx512) return multiply_avx512;
  if (context.isa >= CpuIsa::avx2) return multiply_avx2;
#endif
  CHECK(context.isa == CpuIsa::portable && !weight.is_packed);
  return multiply_portable;
}

namespace {

#if defined(__x86_64__)
void round_rows(Context& context, const ConstTensorView& x, LinearTask& task) {
  const int64_t rows = x.dim(0);
  const int64_t in_features = x.dim(1);
  task.bf16_stride = padded_to_bf16_step(in_features);
  auto* bf16 = reinterpret_cast<uint16_t*>(context.arena->take_f32({rows * task.bf16_stride / 2}).f32());
  for_each_row(context, rows, in_features / kRoundedAtOnce, [&](int64_t row) {
    round_avx512_bf16(x.row(row), in_features, bf16 + row * task.bf16_stride, task.bf16_stride);
  });
  task.bf16 = bf16;
}

void round_quads(Context& context, const ConstTensorView& x, LinearTask& task) {
  const int64_t rows = x.dim(0);
  const int64_t in_features = x.dim(1);
  task.quad_stride = quad_stride_of(rows);
  auto* quads =
      reinterpret_cast<uint64_t*>(context.arena->take_f32({2 * num_quads(in_features) * task.quad_stride}).f32());
  const int64_t blocks = (rows + kQuadRows - 1) / kQuadRows;
  for_each_row(context, blocks, std::min(rows, kQuadRows) * in_features / kRoundedAtOnce, [&](int64_t block) {
    const int64_t end = std::min(rows, (block + 1) * kQuadRows);
    for (int64_t row = block * kQuadRows; row < end; ++row) {
      round_quads_bf16(x.row(row), in_features, quads + row, task.quad_stride);
    }
  });
  task.quads = quads;
}
#endif

}  // namespace

// x as the kernels want it, in memory of the arena.
LinearTask prepare_linear(Context& context, const LinearArgs& args) {
  LinearTask task{.args = args};
  if (std::ranges::any_of(args.weights, is_int8)) task.int8 = quantize_rows(context, args.x);
#if defined(__x86_64__)
  const auto takes_quads = [](const WeightView& weight) { return weight.is_packed; };
  const auto takes_rows = [&](const WeightView& weight) {
    return !weight.is_packed && rounds_to_bf16(context, args, weight);
  };
  if (std::ranges::any_of(args.weights, takes_rows)) round_rows(context, args.x, task);
  if (std::ranges::any_of(args.weights, takes_quads)) round_quads(context, args.x, task);
#endif
  return task;
}

void linear(Context& context, const LinearArgs& args) {
  if (args.x.dim(0) == 0) return;
  const ArenaScope scope(*context.arena);
  const LinearTask call = prepare_linear(context, args);
  const Split tasks{args.weights, features_of_task(args.out.dim(1), context.threads->num_threads())};
  context.threads->parallel_for(tasks.num_tasks(), [&](int64_t task, int) {
    const Slice slice = tasks.slice(task);
    multiply_for(context, args, slice.weight)(call, slice);
  });
}

}  // namespace blockdraft::cpu

namespace blockdraft {

size_t linear_scratch_bytes(int64_t rows, int64_t in_features) {
  const int64_t columns = cpu::padded_to_bf16_step(in_features);
  return arena_bytes_f32(rows * columns / 2) + arena_bytes_f32(cpu::quad_stride_of(rows) * columns / 2) +
         cpu::int8_rows_bytes(rows, columns);
}

}  // namespace blockdraft
