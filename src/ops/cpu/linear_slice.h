// A task of linear(): some output features of one weight, for all rows. One function an instruction set.
#pragma once

#include <algorithm>
#include <cstdint>

#include "ops/cpu/int8_rows.h"
#include "ops/linear.h"

namespace blockdraft::cpu {

// Features [first, first + count) of one weight, whose output begins at column `column`.
struct Slice {
  const WeightView& weight;
  int64_t first;
  int64_t count;
  int64_t column;
};

// A call of linear() as its tasks see it: beside x itself, x as the kernels of an instruction set want it.
struct LinearTask {
  LinearArgs args;
  const uint16_t* bf16 = nullptr;  // [rows, bf16_stride], the columns behind in_features zero; null: not needed
  int64_t bf16_stride = 0;
  const uint64_t* quads = nullptr;  // x in BF16 for weights in packs: [quads of columns, quad_stride rows]
  int64_t quad_stride = 0;
  Int8Rows int8;  // for weights of type I8
};

using MultiplySlice = void (*)(const LinearTask&, const Slice&);

// Of a call of linear(), or of an op that has its own use for the products: the call, with memory of the arena, and the
// function for slices of one of its weights.
LinearTask prepare_linear(Context& context, const LinearArgs& args);
MultiplySlice multiply_for(const Context& context, const LinearArgs& args, const WeightView& weight);

inline constexpr int64_t kLineFeatures = 16;  // output features of a task come in these: a cache line of out
static_assert(kLineFeatures % kPackFeatures == 0);

// How many of a product's output features make a task.
int64_t features_of_task(int64_t out_features, int num_threads);

// For an op that has its own use for the products: a tile of them at a time, on the stack, in the first-level cache.
inline constexpr int64_t kTileElements = 4096;
inline int64_t features_of_tile(int64_t rows) {  // rows: 1 to 256
  constexpr int64_t kMostFeatures = 512;
  return std::min(kMostFeatures, kTileElements / rows / kLineFeatures * kLineFeatures);
}

// For kernels over packs: calls use(numbers, count) for sets of up to `at_once` of them, at most kMost. Those of a set
// lie as far apart as they can: each place is read from front to back.
template <int kMost, class Use>
void for_each_pack_set(int64_t packs, int64_t at_once, const Use& use) {
  const int64_t distance = (packs + at_once - 1) / at_once;
  for (int64_t first = 0; first < distance; ++first) {
    int64_t numbers[kMost];
    int64_t count = 0;
    for (int64_t pack = first; pack < packs; pack += distance) numbers[count++] = pack;
    use(numbers, count);
  }
}

// Writes the slice's columns of args.out as ops/linear.h says. The order of a sum depends on the function and on
// in_features alone.
void multiply_portable(const LinearTask& task, const Slice& slice);
#if defined(__x86_64__)
void multiply_avx2(const LinearTask& task, const Slice& slice);
void multiply_avx512(const LinearTask& task, const Slice& slice);
// Takes x in BF16; weights in BF16, FP8 and NVFP4.
void multiply_avx512_bf16(const LinearTask& task, const Slice& slice);
// The same for weights in packs; slice.first is a multiple of kPackFeatures.
void multiply_packs_bf16(const LinearTask& task, const Slice& slice);

// bf16[0, padded) = values[0, count) to nearest even (subnormal numbers become zero), then zeros.
void round_avx512_bf16(const float* values, int64_t count, uint16_t* bf16, int64_t padded);
// The same, four of them together, at quads[0], quads[stride], ...
void round_quads_bf16(const float* values, int64_t count, uint64_t* quads, int64_t stride);
#endif

// The same for a weight of type I8, with task.int8; slice.first is a multiple of kPackFeatures.
// The groups' sums are exact; their products with both scales are added in the order of the groups.
void multiply_int8_portable(const LinearTask& task, const Slice& slice);
#if defined(__x86_64__)
void multiply_int8_avx2(const LinearTask& task, const Slice& slice);
void multiply_int8_vnni(const LinearTask& task, const Slice& slice);  // AVX-512 with VNNI
#endif

inline constexpr int64_t kBf16Step = 64;  // columns that the BF16 kernels take at once; rows of BF16 are padded to it

// The rows of quads: what several tasks write at once are different cache lines.
inline constexpr int64_t kQuadRows = 8;
inline int64_t quad_stride_of(int64_t rows) {
  return rows <= kQuadRows ? rows : (rows + kQuadRows - 1) / kQuadRows * kQuadRows;
}

inline int64_t padded_to_bf16_step(int64_t in_features) {
  return (in_features + kBf16Step - 1) / kBf16Step * kBf16Step;
}

}  // namespace blockdraft::cpu
