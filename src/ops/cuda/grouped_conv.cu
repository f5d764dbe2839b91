#include "ops/cuda/launch.h"
#include "ops/cuda/overlap.cuh"
#include "ops/cuda/rows.cuh"
#include "ops/grouped_conv.h"

namespace blockdraft::cu {

namespace {

constexpr int kThreads = 256;

struct Conv {
  float* out;
  int64_t out_stride;
  const float* x;
  int64_t x_stride;
  const float* base;
  int64_t base_stride;
  const float* dynamic;
  int64_t dynamic_stride;
  int64_t channels;
  int64_t taps;
  int64_t group_size;
};

__global__ void grouped_conv_kernel(Conv conv, BatchView batch) {
  begin_in_chain();
  const int64_t row = blockIdx.y;
  const int32_t sequence = sequence_of_row(batch, static_cast<int32_t>(row));
  if (sequence < 0) return;
  const int64_t block_row = row - batch.first_row[sequence];
  const int64_t c = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (c >= conv.channels) return;
  const int64_t groups = conv.channels / conv.group_size;
  const float* dynamic = conv.dynamic + row * conv.dynamic_stride + c / conv.group_size;
  float sum = 0.0f;
  for (int64_t t = 0; t < conv.taps && t <= block_row; ++t) {
    sum += (conv.base[t * conv.base_stride + c] + dynamic[t * groups]) * conv.x[(row - t) * conv.x_stride + c];
  }
  conv.out[row * conv.out_stride + c] = sum;
}

}  // namespace

void grouped_conv(Context& context, const GroupedConvArgs& args) {
  const Conv conv{args.out.f32(),  args.out.row_stride,  args.x.f32(),       args.x.row_stride,
                  args.base.f32(), args.base.row_stride, args.dynamic.f32(), args.dynamic.row_stride,
                  args.x.dim(1),   args.base.dim(0),     args.group_size};
  launch(context, "grouped_conv",
         in_chain({blocks_for(conv.channels, kThreads), static_cast<unsigned>(args.batch.num_rows)}, kThreads),
         grouped_conv_kernel, conv, args.batch);
}

}  // namespace blockdraft::cu
