#include "base/check.h"
#include "base/unwatched.h"
#include "ops/cpu/linear_slice.h"
#include "tensor/codec.h"

// After what they need.
#include "ops/cpu/int8_finish.h"
#include "ops/cpu/int8_quantize.h"

namespace blockdraft::cpu {

namespace {

// totals[n] = sum of code * activation over a group, for the features of a pack.
BLOCKDRAFT_UNWATCHED void add_group(const std::byte* codes, const int8_t* x, int32_t start, int32_t* totals) {
  const auto* weights = reinterpret_cast<const uint8_t*>(codes);
  for (int64_t n = 0; n < kPackFeatures; ++n) totals[n] = start;
  for (int64_t k = 0; k < kInt8Group; k += 4) {
    const uint8_t* four = weights + k * kPackFeatures;
    for (int64_t n = 0; n < kPackFeatures; ++n) {
      totals[n] +=
          four[4 * n] * x[k] + four[4 * n + 1] * x[k + 1] + four[4 * n + 2] * x[k + 2] + four[4 * n + 3] * x[k + 3];
    }
  }
}

BLOCKDRAFT_UNWATCHED void multiply_pack(const std::byte* pack, const Int8Rows& x, int64_t row, float* sums) {
  const std::byte* scales = pack + x.groups * kPackGroupCodes;
  for (int64_t n = 0; n < kPackFeatures; ++n) sums[n] = 0.0f;
  for (int64_t g = 0; g < x.groups; ++g) {
    int32_t totals[kPackFeatures];
    add_group(pack + g * kPackGroupCodes, x.codes_of(g, row), x.starts[x.index(g, row)], totals);
    const float x_scale = x.scales[x.index(g, row)];
    for (int64_t n = 0; n < kPackFeatures; ++n) {
      const float scale = float_from_f16(load_unaligned<uint16_t>(scales + g * kPackGroupScales + 2 * n)) * x_scale;
      sums[n] += static_cast<float>(totals[n]) * scale;
    }
  }
}

}  // namespace

void quantize_row_portable(const float* x, const Int8Rows& rows, int64_t row) { quantize_row(x, rows, row); }

void multiply_int8_portable(const LinearTask& task, const Slice& slice) {
  const LinearArgs& args = task.args;
  const Int8Rows& x = task.int8;
  for_each_pack(slice, [&](const std::byte* pack, int64_t n, int64_t count) {
    for (int64_t r = 0; r < args.x.dim(0); ++r) {
      float sums[kPackFeatures];
      multiply_pack(pack, x, r, sums);
      finish_pack(args, slice, r, n, count, sums);
    }
  });
}

}  // namespace blockdraft::cpu
