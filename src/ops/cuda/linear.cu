#include <algorithm>
#include <array>

#include "ops/cuda/best_key.cuh"
#include "ops/cuda/launch.h"
#include "ops/cuda/linear_prompt.h"
#include "ops/cuda/linear_simple.h"
#include "ops/cuda/linear_split.h"
#include "ops/cuda/linear_stream.h"
#include "ops/cuda/ptx.cuh"
#include "ops/linear.h"
#include "ops/linear_argmax.h"
#include "ops/linear_silu_mul.h"
#include "tensor/cuda_device.h"

namespace blockdraft::cu {

void launch_stream_bf16(Context& context, const char* what, const StreamCall& call);
void launch_stream_f8(Context& context, const char* what, const StreamCall& call);
void launch_stream_fp4(Context& context, const char* what, const StreamCall& call);

namespace {

__global__ void best_part_kernel(int32_t* ids, const BestKey* parts) {
  begin_in_chain();
  const BestKey key = best_of_block(parts[int64_t{blockIdx.x} * kBestParts + threadIdx.x]);
  if (threadIdx.x == 0) ids[blockIdx.x] = choice_of(key);
}

bool is_aligned(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer) % 16 == 0; }

const char* why_not_streamed(const Context& context, const WeightView& weight) {
  if (context.cuda->compute_capability() != 90) return "the card is none of compute capability 9.0";
  if (weight.dtype != DType::bf16 && weight.dtype != DType::f8_e4m3 && weight.dtype != DType::u8) {
    return "weights are not BF16, FP8 or NVFP4";
  }
  if (weight.in_features % kUnit != 0) return "in_features is no multiple of 128";
  if (!is_aligned(weight.data) || !is_aligned(weight.group_scales)) return "weights are not aligned to 16 bytes";
  return nullptr;
}

// Rows are taken kMaxRowsAtOnce at a time: a row's result is the same in any company.
template <class Launch>
void for_row_groups(int64_t rows, Launch launch) {
  for (int64_t first = 0; first < rows; first += kMaxRowsAtOnce) {
    launch(first, std::min<int64_t>(kMaxRowsAtOnce, rows - first));
  }
}

StreamCall stream_call(StreamOutput output, const ConstTensorView& x, int64_t first_row, int64_t rows) {
  StreamCall call;
  call.x = x.row_address(first_row);
  call.x_stride = x.row_stride;
  call.x_is_bf16 = x.dtype == DType::bf16;
  CHECK(!call.x_is_bf16 || (is_aligned(call.x) && (rows <= 1 || x.row_stride % 8 == 0)));
  call.rows = static_cast<int32_t>(rows);
  call.output = output;
  return call;
}

void set_out(StreamCall& call, const TensorView& out, int64_t first_row, int64_t first_column) {
  call.out = columns_of(rows_of(out, first_row, call.rows), first_column, 0).data;
  call.out_stride = out.row_stride;
  call.out_is_bf16 = out.dtype == DType::bf16;
}

// The first weights that one call takes: alike ones for the stream kernel, or a single one.
size_t weights_at_once(const Context& context, std::span<const WeightView> weights, bool streams) {
  size_t count = 1;
  while (streams && count < weights.size() && count < kMaxStackedWeights && are_alike(weights[0], weights[count]) &&
         stream_takes(context, weights[count])) {
    ++count;
  }
  return count;
}

void stream_linear(Context& context, const LinearArgs& args, std::span<const WeightView> weights, int64_t column) {
  for_row_groups(args.x.dim(0), [&](int64_t first, int64_t rows) {
    StreamCall call = stream_call(StreamOutput::sums, args.x, first, rows);
    std::ranges::copy(weights, call.weights);
    call.num_weights = static_cast<int32_t>(weights.size());
    set_out(call, args.out, first, column);
    call.accumulate = args.accumulate;
    launch_stream(context, "linear", call);
  });
}

}  // namespace

bool stream_takes(const Context& context, const WeightView& weight, const char** why_not) {
  const char* reason = why_not_streamed(context, weight);
  if (why_not != nullptr) *why_not = reason;
  return reason == nullptr;
}

void launch_stream(Context& context, const char* what, const StreamCall& call) {
  if (context.cuda->skips()) return;
  switch (call.weights[0].dtype) {
    case DType::bf16:
      return launch_stream_bf16(context, what, call);
    case DType::f8_e4m3:
      return launch_stream_f8(context, what, call);
    default:
      return launch_stream_fp4(context, what, call);
  }
}

void best_of_parts(Context& context, int32_t* ids, const BestKey* keys, int64_t rows) {
  launch(context, "linear_argmax", in_chain(static_cast<unsigned>(rows), kBestParts), best_part_kernel, ids, keys);
}

void linear(Context& context, const LinearArgs& args) {
  for (const WeightView& weight : args.weights) CHECK(!weight.is_packed);
  if (args.x.dim(0) == 0) return;
  const auto is_for_prompts = [&](const WeightView& weight) { return prompt_takes(context, args.x.dim(0), weight); };
  if (args.rounds && std::ranges::all_of(args.weights, is_for_prompts)) return linear_prompt(context, args);
  int64_t column = 0;
  for (size_t i = 0; i < args.weights.size();) {
    const bool streams = args.rounds && stream_takes(context, args.weights[i]);
    const auto weights = args.weights.subspan(i, weights_at_once(context, args.weights.subspan(i), streams));
    int64_t columns = 0;
    for (const WeightView& weight : weights) columns += weight.out_features;
    if (streams) {
      stream_linear(context, args, weights, column);
    } else {
      LinearArgs some = args;
      some.out = columns_of(args.out, column, columns);
      some.weights = weights;
      linear_simple(context, some);
    }
    column += columns;
    i += weights.size();
  }
}

void linear_silu_mul(Context& context, const LinearSiluMulArgs& args) {
  CHECK(!args.gate.is_packed && !args.up.is_packed);
  const int64_t rows = args.x.dim(0);
  if (rows == 0) return;
  if (prompt_takes(context, rows, args.gate) && prompt_takes(context, rows, args.up)) {
    return linear_silu_mul_prompt(context, args);
  }
  if (!stream_takes(context, args.gate) || !stream_takes(context, args.up) || !are_alike(args.gate, args.up)) {
    return linear_silu_mul_simple(context, args);
  }
  for_row_groups(rows, [&](int64_t first, int64_t count) {
    StreamCall call = stream_call(StreamOutput::silu_mul, args.x, first, count);
    call.weights[0] = args.gate;
    call.weights[1] = args.up;
    call.num_weights = 2;
    set_out(call, args.out, first, 0);
    launch_stream(context, "linear_silu_mul", call);
  });
}

void linear_argmax(Context& context, const LinearArgmaxArgs& args) {
  CHECK(!args.weight.is_packed);
  const bool streams = stream_takes(context, args.weight);
  for_row_groups(args.x.dim(0), [&](int64_t first, int64_t rows) {
    const ArenaScope scope(*context.arena);
    auto* keys = reinterpret_cast<BestKey*>(context.arena->take_i32(rows * kBestParts * 2));
    if (streams) {
      StreamCall call = stream_call(StreamOutput::keys, args.x, first, rows);
      call.weights[0] = args.weight;
      call.weights[0].out_features = args.num_choices;
      call.num_weights = 1;
      call.multiplier = args.multiplier;
      call.softcap = args.softcap;
      call.keys = keys;
      launch_stream(context, "linear_argmax", call);
    } else {
      best_features_simple(context, keys,
                           {.ids = nullptr,
                            .x = rows_of(args.x, first, rows),
                            .weight = args.weight,
                            .num_choices = args.num_choices,
                            .multiplier = args.multiplier,
                            .softcap = args.softcap});
    }
    best_of_parts(context, args.ids + first, keys, rows);
  });
}

size_t linear_argmax_scratch_bytes(int64_t rows) {
  return arena_bytes_f32(std::min<int64_t>(rows, kMaxRowsAtOnce) * kBestParts * 2);
}

}  // namespace blockdraft::cu
