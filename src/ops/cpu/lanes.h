// Sums of products in one fixed order, in a form that compiles to vector code on every machine.
//
// A sum over k runs in kLanes partial sums: lane j takes k = j, j + kLanes, j + 2 kLanes, ... in sequence. The lanes
// are then added in a fixed tree, and the last count % kLanes elements follow in sequence. So the order depends on the
// count alone, however many sums a kernel works on at a time (docs/architecture.md). Vec4 is the vector extension of
// GCC and Clang: the order is ours, not the auto-vectorizer's.
#pragma once

#include <cstdint>
#include <cstring>

#include "base/unwatched.h"

namespace blockdraft::cpu {

inline constexpr int64_t kLanes = 8;

using Vec4 = float __attribute__((vector_size(16)));

BLOCKDRAFT_UNWATCHED inline Vec4 load4(const float* address) {
  Vec4 value;
  std::memcpy(&value, address, sizeof(value));
  return value;
}
BLOCKDRAFT_UNWATCHED inline void store4(float* address, Vec4 value) { std::memcpy(address, &value, sizeof(value)); }
BLOCKDRAFT_UNWATCHED inline Vec4 broadcast4(float value) { return Vec4{value, value, value, value}; }

struct Lanes {
  Vec4 low{};
  Vec4 high{};
};

BLOCKDRAFT_UNWATCHED inline float sum_of(const Lanes& lanes) {
  const Vec4 sum = lanes.low + lanes.high;
  return (sum[0] + sum[2]) + (sum[1] + sum[3]);
}

// The part of count that the lanes take; the rest is the tail.
inline int64_t lane_part(int64_t count) { return count / kLanes * kLanes; }

// One half of the lanes, of kRowsA x kRowsB sums that stay in registers.
template <int kRowsA, int kRowsB>
BLOCKDRAFT_UNWATCHED inline void add_products_of_half(Lanes* sums, int64_t sums_stride, Vec4 Lanes::*half,
                                                      const float* a, int64_t a_stride, const float* b,
                                                      int64_t b_stride, int64_t count) {
  Vec4 total[kRowsA][kRowsB];
  for (int i = 0; i < kRowsA; ++i) {
    for (int j = 0; j < kRowsB; ++j) total[i][j] = sums[i * sums_stride + j].*half;
  }
  for (int64_t k = 0; k < count; k += kLanes) {
    Vec4 row[kRowsA];
    for (int i = 0; i < kRowsA; ++i) row[i] = load4(a + i * a_stride + k);
    for (int j = 0; j < kRowsB; ++j) {
      const Vec4 column = load4(b + j * b_stride + k);
      for (int i = 0; i < kRowsA; ++i) total[i][j] += column * row[i];
    }
  }
  for (int i = 0; i < kRowsA; ++i) {
    for (int j = 0; j < kRowsB; ++j) sums[i * sums_stride + j].*half = total[i][j];
  }
}

// Both halves of the lanes at once.
template <int kRowsA, int kRowsB>
BLOCKDRAFT_UNWATCHED inline void add_products_of_both(Lanes* sums, int64_t sums_stride, const float* a,
                                                      int64_t a_stride, const float* b, int64_t b_stride,
                                                      int64_t count) {
  Lanes total[kRowsA][kRowsB];
  for (int i = 0; i < kRowsA; ++i) {
    for (int j = 0; j < kRowsB; ++j) total[i][j] = sums[i * sums_stride + j];
  }
  for (int64_t k = 0; k < count; k += kLanes) {
    Lanes row[kRowsA];
    for (int i = 0; i < kRowsA; ++i) row[i] = {load4(a + i * a_stride + k), load4(a + i * a_stride + k + 4)};
    for (int j = 0; j < kRowsB; ++j) {
      const Lanes column = {load4(b + j * b_stride + k), load4(b + j * b_stride + k + 4)};
      for (int i = 0; i < kRowsA; ++i) {
        total[i][j].low += column.low * row[i].low;
        total[i][j].high += column.high * row[i].high;
      }
    }
  }
  for (int i = 0; i < kRowsA; ++i) {
    for (int j = 0; j < kRowsB; ++j) sums[i * sums_stride + j] = total[i][j];
  }
}

// sums[i * sums_stride + j] += products of a's row i and b's row j over count elements, count a multiple of kLanes.
// Many sums are made one half after the other, so that they fit into the registers: the order in each lane is the same.
template <int kRowsA, int kRowsB>
BLOCKDRAFT_UNWATCHED inline void add_products(Lanes* sums, int64_t sums_stride, const float* a, int64_t a_stride,
                                              const float* b, int64_t b_stride, int64_t count) {
  if constexpr (kRowsA * kRowsB <= 4) {
    add_products_of_both<kRowsA, kRowsB>(sums, sums_stride, a, a_stride, b, b_stride, count);
  } else {
    add_products_of_half<kRowsA, kRowsB>(sums, sums_stride, &Lanes::low, a, a_stride, b, b_stride, count);
    add_products_of_half<kRowsA, kRowsB>(sums, sums_stride, &Lanes::high, a + 4, a_stride, b + 4, b_stride, count);
  }
}

// total + the products of elements [0, count), in sequence.
BLOCKDRAFT_UNWATCHED inline float add_tail(float total, const float* a, const float* b, int64_t count) {
  for (int64_t k = 0; k < count; ++k) total += a[k] * b[k];
  return total;
}

BLOCKDRAFT_UNWATCHED inline float dot(const float* a, const float* b, int64_t count) {
  Lanes lanes;
  const int64_t part = lane_part(count);
  add_products<1, 1>(&lanes, 1, a, 0, b, 0, part);
  return add_tail(sum_of(lanes), a + part, b + part, count - part);
}

}  // namespace blockdraft::cpu
