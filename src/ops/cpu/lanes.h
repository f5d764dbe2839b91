// Sums of products in one fixed order, in a form that compiles to vector code on every machine.
//
// A sum over k runs in kLanes partial sums: lane j takes k = j, j + kLanes, j + 2 kLanes, ... in sequence. The lanes
// are then added in a fixed tree, and the last count % kLanes elements follow in sequence. So the order depends on the
// count alone, however many sums a kernel works on at a time (design D1). Vec4 is the vector extension of GCC and
// Clang: the order is ours, not the auto-vectorizer's.
#pragma once

#include <cstdint>
#include <cstring>

namespace blockdraft::cpu {

inline constexpr int64_t kLanes = 8;

using Vec4 = float __attribute__((vector_size(16)));

inline Vec4 load4(const float* address) {
  Vec4 value;
  std::memcpy(&value, address, sizeof(value));
  return value;
}
inline void store4(float* address, Vec4 value) { std::memcpy(address, &value, sizeof(value)); }
inline Vec4 broadcast4(float value) { return Vec4{value, value, value, value}; }

struct Lanes {
  Vec4 low{};
  Vec4 high{};
};

inline float sum_of(const Lanes& lanes) {
  const Vec4 sum = lanes.low + lanes.high;
  return (sum[0] + sum[2]) + (sum[1] + sum[3]);
}

// The part of count that the lanes take; the rest is the tail.
inline int64_t lane_part(int64_t count) { return count / kLanes * kLanes; }

// sums[i * sums_stride + j] += products of a's row i and b's row j over count elements, count a multiple of kLanes.
template <int kRowsA, int kRowsB>
inline void add_products(Lanes* sums, int64_t sums_stride, const float* a, int64_t a_stride, const float* b,
                         int64_t b_stride, int64_t count) {
  Vec4 low[kRowsA][kRowsB];
  Vec4 high[kRowsA][kRowsB];
  for (int i = 0; i < kRowsA; ++i) {
    for (int j = 0; j < kRowsB; ++j) {
      low[i][j] = sums[i * sums_stride + j].low;
      high[i][j] = sums[i * sums_stride + j].high;
    }
  }
  for (int64_t k = 0; k < count; k += kLanes) {
    for (int i = 0; i < kRowsA; ++i) {
      for (int j = 0; j < kRowsB; ++j) {
        low[i][j] += load4(a + i * a_stride + k) * load4(b + j * b_stride + k);
        high[i][j] += load4(a + i * a_stride + k + 4) * load4(b + j * b_stride + k + 4);
      }
    }
  }
  for (int i = 0; i < kRowsA; ++i) {
    for (int j = 0; j < kRowsB; ++j) {
      sums[i * sums_stride + j].low = low[i][j];
      sums[i * sums_stride + j].high = high[i][j];
    }
  }
}

// total + the products of elements [0, count), in sequence.
inline float add_tail(float total, const float* a, const float* b, int64_t count) {
  for (int64_t k = 0; k < count; ++k) total += a[k] * b[k];
  return total;
}

inline float dot(const float* a, const float* b, int64_t count) {
  Lanes lanes;
  const int64_t part = lane_part(count);
  add_products<1, 1>(&lanes, 1, a, 0, b, 0, part);
  return add_tail(sum_of(lanes), a + part, b + part, count - part);
}

}  // namespace blockdraft::cpu
