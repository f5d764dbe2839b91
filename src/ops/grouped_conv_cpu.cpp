#include <algorithm>

#include "ops/cpu/batch.h"
#include "ops/cpu/parallel.h"
#include "ops/grouped_conv.h"

namespace blockdraft::cpu {

namespace {

// out[c] += (base[c] + dynamic[c / group_size]) * x[c]
void add_tap(float* out, const float* x, const float* base, const float* dynamic, int64_t channels,
             int64_t group_size) {
  for (int64_t first = 0; first < channels; first += group_size) {
    const float coefficient = dynamic[first / group_size];
    for (int64_t c = first; c < first + group_size; ++c) out[c] += (base[c] + coefficient) * x[c];
  }
}

}  // namespace

void grouped_conv(Context& context, const GroupedConvArgs& args) {
  const int64_t channels = args.x.dim(1);
  const int64_t taps = args.base.dim(0);
  const int64_t groups = channels / args.group_size;
  for_each_row(context, args.x.dim(0), taps * channels, [&](int64_t r) {
    const int64_t block_row = r - args.batch.first_row[sequence_of_row(args.batch, r)];
    float* out = args.out.row(r);
    std::fill_n(out, channels, 0.0f);
    for (int64_t t = 0; t < std::min(taps, block_row + 1); ++t) {
      add_tap(out, args.x.row(r - t), args.base.row(t), args.dynamic.row(r) + t * groups, channels, args.group_size);
    }
  });
}

}  // namespace blockdraft::cpu
