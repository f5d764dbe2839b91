// The products as a Hopper card computes them at the speed of its memory: BF16, FP8 and NVFP4 weights with in_features
// a multiple of 128, for up to 64 rows at a time (linear_stream.cuh).
//
// The memory of a weight ends at a multiple of 16 bytes at least, beyond its last element if need be: NVFP4 group
// scales are copied in pieces of 16 bytes (Buffer::allocate_on sees to it).
#pragma once

#include <cstdint>

#include "tensor/context.h"
#include "tensor/weight_view.h"

namespace blockdraft::cu {

using BestKey = unsigned long long;  // best_key.cuh, which has the rest for kernels

inline constexpr int kMaxStackedWeights = 12;  // q, k, v; k and v of the layers of a drafter
inline constexpr int kMaxRowsAtOnce = 64;      // for which the weights come out of memory once
inline constexpr int kBestParts = 128;         // of a row: the best that so many blocks or clusters found

enum class StreamOutput : uint8_t {
  sums,      // out[r, n] = product (+ out[r, n] if accumulate); n counts through the stacked weights
  silu_mul,  // out[r, n] = silu(product with weights[0]) * product with weights[1]
  keys,      // keys[r, part] = the best that a part of the blocks found in weights[0]
};

struct StreamCall {
  const void* x = nullptr;  // [rows, in_features] float32, or BF16: then 16-byte aligned, x_stride a multiple of 8
  int64_t x_stride = 0;     // elements
  bool x_is_bf16 = false;
  int32_t rows = 0;  // at most kMaxRowsAtOnce
  int32_t num_weights = 0;
  WeightView weights[kMaxStackedWeights];  // of one type and one kind of scales

  StreamOutput output = StreamOutput::sums;
  void* out = nullptr;  // float32, or BF16 (never with accumulate)
  int64_t out_stride = 0;
  bool out_is_bf16 = false;
  bool accumulate = false;

  float multiplier = 1.0f;  // of keys, as in scale_softcap()
  float softcap = 0.0f;
  BestKey* keys = nullptr;  // [rows, kBestParts]
};

// Whether the kernel is for this card and weight. The rows have no say in it. `why_not` gets the reason, if any.
bool stream_takes(const Context& context, const WeightView& weight, const char** why_not = nullptr);

// Whether two weights can be in one call.
inline bool are_alike(const WeightView& a, const WeightView& b) {
  return a.dtype == b.dtype && (a.block_scales == nullptr) == (b.block_scales == nullptr);
}

void launch_stream(Context& context, const char* what, const StreamCall& call);

// ids[r] = the choice that the parts of row r hold.
void best_of_parts(Context& context, int32_t* ids, const BestKey* keys, int64_t rows);

}  // namespace blockdraft::cu
