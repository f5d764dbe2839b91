// What int8 products share: the walk over the packs of a slice, and (but for AVX-512, which stores vectors) what
// becomes of finished sums. Local to each file, as int8_quantize.h.
#pragma once

namespace blockdraft::cpu {
namespace {

// Calls body(first byte of a pack, its first feature within the slice, how many of its features the slice has).
template <class Body>
void for_each_pack(const Slice& slice, const Body& body) {
  CHECK(slice.first % kPackFeatures == 0);
  const std::byte* pack = slice.weight.data + slice.first / kPackFeatures * int8_pack_bytes(slice.weight.in_features);
  for (int64_t n = 0; n < slice.count; n += kPackFeatures) {
    body(pack, n, slice.count - n < kPackFeatures ? slice.count - n : kPackFeatures);
    pack += int8_pack_bytes(slice.weight.in_features);
  }
}

inline void finish_pack(const LinearArgs& args, const Slice& slice, int64_t row, int64_t n, int64_t count,
                        const float* sums) {
  float* out = args.out.row(row) + slice.column + n;
  const float* bias = slice.weight.bias == nullptr ? nullptr : slice.weight.bias + slice.first + n;
  for (int64_t i = 0; i < count; ++i) {
    const float value = bias == nullptr ? sums[i] : sums[i] + bias[i];
    out[i] = args.accumulate ? out[i] + value : value;
  }
}

}  // namespace
}  // namespace blockdraft::cpu
