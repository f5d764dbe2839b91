#if defined(__x86_64__)

#include <algorithm>
#include <cstring>

#include <immintrin.h>

#include "base/check.h"
#include "base/target_options.h"
#include "base/unwatched.h"
#include "ops/cpu/linear_slice.h"

BLOCKDRAFT_TARGET_BEGIN("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx2,fma,f16c")
#include "ops/cpu/int8_quantize.h"

namespace blockdraft::cpu {
namespace {

constexpr int kMaxRows = 8;
constexpr int kMaxPacks = 4;      // read at once, from as many places: one alone is read more slowly
constexpr int kMaxVectors = 24;   // of 32 registers: a vector of totals and one of sums for each row and pack
constexpr int64_t kAhead = 8192;  // bytes between what is multiplied and what is fetched, into the second-level cache

constexpr int most_packs(int rows) { return std::clamp(kMaxVectors / (2 * rows), 1, kMaxPacks); }

// Some packs of a slice: their first bytes, and their first features within the slice.
template <int kPacks>
struct PackSet {
  const std::byte* packs[kPacks];
  int64_t features[kPacks];
};

inline __m512i four_activations(const int8_t* x) {
  int32_t four;
  std::memcpy(&four, x, sizeof(four));
  return _mm512_set1_epi32(four);
}

inline void finish(const LinearArgs& args, const Slice& slice, int64_t row, int64_t n, __m512 value) {
  const int64_t count = std::min(slice.count - n, kPackFeatures);
  const auto features = static_cast<__mmask16>((1u << count) - 1);
  float* out = args.out.row(row) + slice.column + n;
  if (slice.weight.bias != nullptr) {
    value = _mm512_add_ps(value, _mm512_maskz_loadu_ps(features, slice.weight.bias + slice.first + n));
  }
  if (args.accumulate) value = _mm512_add_ps(_mm512_maskz_loadu_ps(features, out), value);
  _mm512_mask_storeu_ps(out, features, value);
}

// A group of columns: totals begin at the value that makes up for the offset of the weights' bytes.
template <int kRows, int kPacks>
BLOCKDRAFT_UNWATCHED inline void add_group(__m512 (&sums)[kRows][kPacks], const PackSet<kPacks>& set, const Int8Rows& x,
                                           int64_t first_row, int64_t g) {
  const int8_t* codes = x.codes_of(g, first_row);
  const float* x_scales = x.scales + x.index(g, first_row);
  const int32_t* starts = x.starts + x.index(g, first_row);
  __m512i totals[kRows][kPacks];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int p = 0; p < kPacks; ++p) totals[r][p] = _mm512_set1_epi32(starts[r]);
  }
#pragma GCC unroll 8
  for (int64_t v = 0; v < kInt8Group / 4; ++v) {
    const int64_t at = g * kPackGroupCodes + v * 64;
    __m512i weights[kPacks];
#pragma GCC unroll 4
    for (int p = 0; p < kPacks; ++p) {
      _mm_prefetch(set.packs[p] + at + kAhead, _MM_HINT_T1);
      weights[p] = _mm512_loadu_si512(set.packs[p] + at);
    }
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const __m512i four = four_activations(codes + r * kInt8Group + 4 * v);
#pragma GCC unroll 4
      for (int p = 0; p < kPacks; ++p) totals[r][p] = _mm512_dpbusd_epi32(totals[r][p], weights[p], four);
    }
  }
#pragma GCC unroll 4
  for (int p = 0; p < kPacks; ++p) {
    const std::byte* scales = set.packs[p] + x.groups * kPackGroupCodes + g * kPackGroupScales;
    const __m512 weight_scale = _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(scales)));
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const __m512 scale = _mm512_mul_ps(weight_scale, _mm512_set1_ps(x_scales[r]));
      sums[r][p] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(totals[r][p]), scale, sums[r][p]);
    }
  }
}

template <int kRows, int kPacks>
void multiply_rows(const LinearArgs& args, const Slice& slice, const PackSet<kPacks>& set, const Int8Rows& x,
                   int64_t first_row) {
  __m512 sums[kRows][kPacks];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int p = 0; p < kPacks; ++p) sums[r][p] = _mm512_setzero_ps();
  }
  for (int64_t g = 0; g < x.groups; ++g) add_group(sums, set, x, first_row, g);
  for (int r = 0; r < kRows; ++r) {
    for (int p = 0; p < kPacks; ++p) finish(args, slice, first_row + r, set.features[p], sums[r][p]);
  }
}

// multiply_rows for a number of rows known at run time, 1 to kRows.
template <int kRows, int kPacks>
void multiply_some(const LinearArgs& args, const Slice& slice, const PackSet<kPacks>& set, const Int8Rows& x,
                   int64_t first_row, int64_t rows) {
  if constexpr (kRows > 1) {
    if (rows < kRows) return multiply_some<kRows - 1>(args, slice, set, x, first_row, rows);
  }
  if constexpr (kPacks <= most_packs(kRows)) {
    multiply_rows<kRows>(args, slice, set, x, first_row);
  } else {
    CHECK(!"fewer packs");
  }
}

// All rows, in blocks of nearly the same number. Packs stay in the first- or second-level cache while they pass.
template <int kPacks>
void multiply_packs(const LinearTask& task, const Slice& slice, const int64_t (&numbers)[kMaxPacks], int64_t count) {
  if constexpr (kPacks > 1) {
    if (count < kPacks) return multiply_packs<kPacks - 1>(task, slice, numbers, count);
  }
  const int64_t bytes = int8_pack_bytes(slice.weight.in_features);
  PackSet<kPacks> set;
  for (int p = 0; p < kPacks; ++p) {
    set.packs[p] = slice.weight.data + (slice.first / kPackFeatures + numbers[p]) * bytes;
    set.features[p] = numbers[p] * kPackFeatures;
  }
  const int64_t num_rows = task.args.x.dim(0);
  int64_t blocks = (num_rows + kMaxRows - 1) / kMaxRows;
  for (int64_t row = 0; row < num_rows; --blocks) {
    const int64_t rows = (num_rows - row + blocks - 1) / blocks;
    multiply_some<kMaxRows>(task.args, slice, set, task.int8, row, rows);
    row += rows;
  }
}

}  // namespace

void quantize_row_vnni(const float* x, const Int8Rows& rows, int64_t row) { quantize_row(x, rows, row); }

void multiply_int8_vnni(const LinearTask& task, const Slice& slice) {
  CHECK(slice.first % kPackFeatures == 0);
  const int64_t num_rows = task.args.x.dim(0);
  const int64_t blocks = (num_rows + kMaxRows - 1) / kMaxRows;
  const int64_t at_once = most_packs(static_cast<int>((num_rows + blocks - 1) / blocks));
  for_each_pack_set<kMaxPacks>(num_packs(slice.count), at_once, [&](const int64_t(&numbers)[kMaxPacks], int64_t count) {
    multiply_packs<kMaxPacks>(task, slice, numbers, count);
  });
}

}  // namespace blockdraft::cpu
BLOCKDRAFT_TARGET_END

#endif
