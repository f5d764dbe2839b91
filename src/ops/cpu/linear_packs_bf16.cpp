// Products of rows of BF16 with BF16 and FP8 weights in packs (tensor/dword_pack.h). A sum runs over the columns in
// sequence, in one lane (BF16) or in two that are added at the end (FP8), whatever the number of rows.
#if defined(__x86_64__)

#include <algorithm>
#include <array>
#include <cstring>

#include <immintrin.h>

#include "base/check.h"
#include "base/target_options.h"
#include "base/unwatched.h"
#include "ops/cpu/linear_slice.h"
#include "tensor/codec.h"
#include "tensor/dword_pack.h"

BLOCKDRAFT_TARGET_BEGIN("avx512bf16,avx512vbmi,avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")
#include "ops/cpu/f8_bytes.h"

namespace blockdraft::cpu {
namespace {

constexpr int kMaxPacks = 4;       // read at once, from as many places: one alone is read more slowly
constexpr int kMaxSums = 24;       // of 32 registers
constexpr int kMaxRows = 16;       // multiplied at once, so that memory and multiplication overlap best
constexpr int kRowsOfGroup = 12;   // where there are more
constexpr int64_t kRowsOfX = 256;  // whose sums wait while a piece of the weights is in the first-level cache
constexpr int64_t kMaxWaiting = kRowsOfX * (kMaxSums / kRowsOfGroup);  // sums of 16 features
constexpr int64_t kPieceQuads = 64;
// Bytes between what is multiplied and what is fetched, into the second-level cache.
constexpr int64_t kAhead = 8192;

BLOCKDRAFT_UNWATCHED inline __m512 multiply_add(__m512i a, __m512i b, __m512 sum) {
  return _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(a), reinterpret_cast<__m512bh>(b));
}

BLOCKDRAFT_UNWATCHED inline __m512i broadcast(const uint64_t* quad, int half) {
  int32_t columns;
  std::memcpy(&columns, reinterpret_cast<const std::byte*>(quad) + half * kDwordBytes, sizeof(columns));
  return _mm512_set1_epi32(columns);
}

// How a quad of a type is multiplied: kSums sums for each row and pack.
struct Bf16Quad {
  static constexpr DType kDType = DType::bf16;
  static constexpr int kSums = 1;

  // Two lines, one after the other into the same sums.
  template <int kRows, int kPacks>
  BLOCKDRAFT_UNWATCHED static void add(__m512 (&sums)[kRows][kPacks][kSums], const std::byte* const (&codes)[kPacks],
                                       int64_t offset, const uint64_t* x) {
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      __m512i values[kPacks];
#pragma GCC unroll 4
      for (int p = 0; p < kPacks; ++p) values[p] = _mm512_loadu_si512(codes[p] + offset + half * kLineBytes);
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) {
        const __m512i columns = broadcast(x + r, half);
#pragma GCC unroll 4
        for (int p = 0; p < kPacks; ++p) sums[r][p][0] = multiply_add(values[p], columns, sums[r][p][0]);
      }
    }
  }
  static __m512 total(const __m512 (&sums)[kSums]) { return sums[0]; }
};

struct F8Quad {
  static constexpr DType kDType = DType::f8_e4m3;
  static constexpr int kSums = 2;

  // One line. As BF16 it makes two vectors: the first has features 0 and 1 of each four in a 128-bit lane, the second 2
  // and 3; of each feature first two columns, then two.
  template <int kRows, int kPacks>
  BLOCKDRAFT_UNWATCHED static void add(__m512 (&sums)[kRows][kPacks][kSums], const std::byte* const (&codes)[kPacks],
                                       int64_t offset, const uint64_t* x) {
#pragma GCC unroll 4
    for (int p = 0; p < kPacks; ++p) {
      const __m512i line = _mm512_loadu_si512(codes[p] + offset);
      const __m512i high = f8_high_bytes(line);
      const __m512i low = f8_low_bytes(line);
      const __m512i first = _mm512_unpacklo_epi8(low, high);
      const __m512i second = _mm512_unpackhi_epi8(low, high);
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) {
        const __m512i columns = _mm512_set1_epi64(static_cast<int64_t>(x[r]));
        sums[r][p][0] = multiply_add(first, columns, sums[r][p][0]);
        sums[r][p][1] = multiply_add(second, columns, sums[r][p][1]);
      }
    }
  }
  static __m512 total(const __m512 (&sums)[kSums]) {
    const __m512 first = _mm512_shuffle_ps(sums[0], sums[1], _MM_SHUFFLE(2, 0, 2, 0));
    const __m512 second = _mm512_shuffle_ps(sums[0], sums[1], _MM_SHUFFLE(3, 1, 3, 1));
    return _mm512_add_ps(first, second);
  }
};

template <class Quad>
constexpr int most_packs(int rows) {
  return std::min(kMaxSums / (rows * Quad::kSums), kMaxPacks);
}
template <class Quad>
constexpr int kMostRows = std::min(kMaxSums / Quad::kSums, kMaxRows);

template <class Quad>
int64_t groups_of(int64_t rows) {
  return rows <= kMostRows<Quad> ? 1 : (rows + kRowsOfGroup - 1) / kRowsOfGroup;
}

// Quads [first, first + count) of some packs.
template <int kPacks>
struct Piece {
  const std::byte* codes[kPacks];
  int64_t first;
  int64_t count;
};

// Weights that come later are asked for evenly while rows pass: each group of rows asks for its share of a piece.
struct Share {
  int64_t first_line;
  int64_t groups;
};

// sums[r][p] += products of row r of x and the features of pack p.
template <class Quad, int kRows, int kPacks>
BLOCKDRAFT_UNWATCHED inline void add_products(__m512 (&sums)[kRows][kPacks][Quad::kSums], const Piece<kPacks>& piece,
                                              const uint64_t* x, int64_t x_stride, Share share) {
  constexpr int64_t kBytes = quad_bytes(Quad::kDType);
  int64_t until_fetch = 1;
  int64_t fetched = kAhead + share.first_line * kLineBytes;
  for (int64_t quad = 0; quad < piece.count; ++quad, x += x_stride) {
    if (--until_fetch == 0) {
      for (int64_t line = 0; line < kBytes; line += kLineBytes) {
#pragma GCC unroll 4
        for (int p = 0; p < kPacks; ++p) _mm_prefetch(piece.codes[p] + fetched + line, _MM_HINT_T1);
      }
      fetched += kBytes;
      until_fetch = share.groups;
    }
    Quad::add(sums, piece.codes, quad * kBytes, x);
  }
}

// One set of packs with all rows of a call: where sums wait between pieces, and what becomes of them.
template <class Quad, int kPacks>
struct PackSet {
  const LinearTask& task;
  const Slice& slice;
  int64_t first_pack[kPacks];  // within the slice
  float* waiting;              // [rows of a call][kPacks][kSums][16]

  const std::byte* codes(int p) const {
    return slice.weight.data +
           (slice.first / kPackFeatures + first_pack[p]) * dword_pack_bytes(Quad::kDType, slice.weight.in_features);
  }
  float* waiting_sum(int64_t row, int p, int s) const {
    return waiting + ((row * kPacks + p) * Quad::kSums + s) * kPackFeatures;
  }

  // `value` is the total of a row and a pack.
  void finish(int64_t row, int p, __m512 value) const {
    const int64_t n = first_pack[p] * kPackFeatures;
    const int64_t count = std::min(slice.count - n, kPackFeatures);
    const auto features = static_cast<__mmask16>((1u << count) - 1);
    const auto of_features = [&](const float* values) {
      return _mm512_maskz_loadu_ps(features, values + slice.first + n);
    };
    float* out = task.args.out.row(row) + slice.column + n;
    const WeightView& weight = slice.weight;
    if (weight.row_scales != nullptr) value = _mm512_mul_ps(value, of_features(weight.row_scales));
    if (weight.bias != nullptr) value = _mm512_add_ps(value, of_features(weight.bias));
    if (task.args.accumulate) value = _mm512_add_ps(_mm512_maskz_loadu_ps(features, out), value);
    _mm512_mask_storeu_ps(out, features, value);
  }
};

// Which piece of its columns a group of rows is at.
struct Step {
  int64_t first_row;  // of the group, among those whose sums wait
  bool is_first;      // piece
  bool is_last;
};

template <class Quad, int kPacks>
__m512 scale_of_blocks(const PackSet<Quad, kPacks>& set, int p, int64_t column) {
  const WeightView& weight = set.slice.weight;
  return _mm512_set1_ps(
      weight.block_scales_of(set.slice.first + set.first_pack[p] * kPackFeatures)[column / kScaleBlock]);
}

template <class Quad, int kRows, int kPacks>
using Sums = __m512[kRows][kPacks][Quad::kSums];

// Calls visit(sum, r, p, s) for each.
template <class Quad, int kRows, int kPacks, class Visit>
inline void for_each_sum(Sums<Quad, kRows, kPacks>& sums, const Visit& visit) {
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int p = 0; p < kPacks; ++p) {
#pragma GCC unroll 2
      for (int s = 0; s < Quad::kSums; ++s) visit(sums[r][p][s], r, p, s);
    }
  }
}

// A piece with kRows rows; `base_row`: the first row whose sums wait. With block scales, a piece is one block: its sums
// are scaled and added to those that wait.
template <class Quad, int kRows, int kPacks>
void multiply_group(const PackSet<Quad, kPacks>& set, const Piece<kPacks>& piece, int64_t base_row, Step step,
                    Share share) {
  const bool scales_sums = set.slice.weight.block_scales != nullptr;
  const int64_t row = base_row + step.first_row;
  const LinearTask& task = set.task;
  Sums<Quad, kRows, kPacks> sums;
  const auto waiting = [&](int r, int p, int s) { return set.waiting_sum(step.first_row + r, p, s); };
  if (step.is_first || scales_sums) {
    for_each_sum<Quad, kRows, kPacks>(sums, [](__m512& sum, int, int, int) { sum = _mm512_setzero_ps(); });
  } else {
    for_each_sum<Quad, kRows, kPacks>(
        sums, [&](__m512& sum, int r, int p, int s) { sum = _mm512_load_ps(waiting(r, p, s)); });
  }
  add_products<Quad>(sums, piece, task.quads + piece.first * task.quad_stride + row, task.quad_stride, share);
  if (scales_sums) {
    for_each_sum<Quad, kRows, kPacks>(sums, [&](__m512& sum, int r, int p, int s) {
      const __m512 before = step.is_first ? _mm512_setzero_ps() : _mm512_load_ps(waiting(r, p, s));
      sum = _mm512_fmadd_ps(sum, scale_of_blocks(set, p, piece.first * kQuad), before);
    });
  }
  if (!step.is_last) {
    for_each_sum<Quad, kRows, kPacks>(
        sums, [&](__m512& sum, int r, int p, int s) { _mm512_store_ps(waiting(r, p, s), sum); });
  } else {
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
      for (int p = 0; p < kPacks; ++p) set.finish(row + r, p, Quad::total(sums[r][p]));
    }
  }
}

// multiply_group for a number of rows known at run time, 1 to kRows.
template <class Quad, int kRows, int kPacks>
void multiply_rows(const PackSet<Quad, kPacks>& set, const Piece<kPacks>& piece, int64_t base_row, int64_t rows,
                   Step step, Share share) {
  if constexpr (kRows > 1) {
    if (rows < kRows) return multiply_rows<Quad, kRows - 1>(set, piece, base_row, rows, step, share);
  }
  if constexpr (kPacks <= most_packs<Quad>(kRows)) {
    multiply_group<Quad, kRows>(set, piece, base_row, step, share);
  } else {
    CHECK(!"fewer packs");
  }
}

// Rows [first, first + count) of a call, at most kRowsOfX. Few of them take all columns at once; more pass by a piece
// of the columns after another, in groups of nearly the same size.
template <class Quad, int kPacks>
void multiply_set(const PackSet<Quad, kPacks>& set, int64_t first, int64_t count) {
  const WeightView& weight = set.slice.weight;
  const int64_t quads = num_quads(weight.in_features);
  const int64_t groups = groups_of<Quad>(count);
  const int64_t piece_quads = weight.block_scales != nullptr ? kScaleBlock / kQuad : groups == 1 ? quads : kPieceQuads;
  for (int64_t first_quad = 0; first_quad < quads; first_quad += piece_quads) {
    Piece<kPacks> piece{{}, first_quad, std::min(piece_quads, quads - first_quad)};
    for (int p = 0; p < kPacks; ++p) piece.codes[p] = set.codes(p) + first_quad * quad_bytes(Quad::kDType);
    const int64_t lines = piece.count * quad_bytes(Quad::kDType) / kLineBytes;
    int64_t row = 0;
    for (int64_t group = 0; group < groups; ++group) {
      const int64_t rows = (count - row + groups - group - 1) / (groups - group);
      multiply_rows<Quad, kMostRows<Quad>>(set, piece, first, rows,
                                           {row, first_quad == 0, first_quad + piece_quads >= quads},
                                           {group * lines / groups, groups});
      row += rows;
    }
  }
}

// The packs of these numbers within the slice.
template <class Quad, int kPacks>
void multiply_packs(const LinearTask& task, const Slice& slice, const int64_t (&numbers)[kMaxPacks], int64_t first,
                    int64_t count) {
  CHECK(count * kPacks * Quad::kSums <= kMaxWaiting);
  alignas(64) float waiting[kMaxWaiting * kPackFeatures];
  PackSet<Quad, kPacks> set{task, slice, {}, waiting};
  for (int p = 0; p < kPacks; ++p) set.first_pack[p] = numbers[p];
  multiply_set(set, first, count);
}

// multiply_packs for a number of packs known at run time, 1 to kPacks.
template <class Quad, int kPacks>
void multiply_some(const LinearTask& task, const Slice& slice, const int64_t (&numbers)[kMaxPacks], int64_t packs,
                   int64_t first, int64_t count) {
  if constexpr (kPacks > 1) {
    if (packs < kPacks) return multiply_some<Quad, kPacks - 1>(task, slice, numbers, packs, first, count);
  }
  multiply_packs<Quad, kPacks>(task, slice, numbers, first, count);
}

// `count` rows, at most kRowsOfX.
template <class Quad>
void multiply_some_rows(const LinearTask& task, const Slice& slice, int64_t first, int64_t count) {
  const int64_t groups = groups_of<Quad>(count);
  const int64_t at_once = most_packs<Quad>(static_cast<int>((count + groups - 1) / groups));
  for_each_pack_set<kMaxPacks>(num_packs(slice.count), at_once, [&](const int64_t(&numbers)[kMaxPacks], int64_t packs) {
    multiply_some<Quad, kMaxPacks>(task, slice, numbers, packs, first, count);
  });
}

template <class Quad>
void multiply_slice(const LinearTask& task, const Slice& slice) {
  const int64_t num_rows = task.args.x.dim(0);
  for (int64_t first = 0; first < num_rows; first += kRowsOfX) {
    multiply_some_rows<Quad>(task, slice, first, std::min(kRowsOfX, num_rows - first));
  }
}

}  // namespace

void multiply_packs_bf16(const LinearTask& task, const Slice& slice) {
  CHECK(slice.weight.is_packed && slice.first % kPackFeatures == 0);
  if (slice.weight.dtype == DType::bf16) return multiply_slice<Bf16Quad>(task, slice);
  CHECK(slice.weight.dtype == DType::f8_e4m3);
  multiply_slice<F8Quad>(task, slice);
}

void round_quads_bf16(const float* values, int64_t count, uint64_t* quads, int64_t stride) {
  for (int64_t k = 0; k < count; k += 16) {
    const auto mask = static_cast<__mmask16>(count - k < 16 ? (1u << (count - k)) - 1 : 0xffffu);
    const __m256bh rounded = _mm512_cvtneps_pbh(_mm512_maskz_loadu_ps(mask, values + k));
    alignas(32) uint64_t four[4];
    _mm256_store_si256(reinterpret_cast<__m256i*>(four), reinterpret_cast<__m256i>(rounded));
    const int64_t end = std::min<int64_t>(4, num_quads(count - k));
    for (int64_t i = 0; i < end; ++i) quads[(k / kQuad + i) * stride] = four[i];
  }
}

}  // namespace blockdraft::cpu
BLOCKDRAFT_TARGET_END

#endif
