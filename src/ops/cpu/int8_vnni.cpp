#if defined(__x86_64__)

#include <cstring>

#include <immintrin.h>

#include "base/check.h"
#include "base/target_options.h"
#include "base/unwatched.h"
#include "ops/cpu/linear_slice.h"

BLOCKDRAFT_TARGET_BEGIN("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx2,fma,f16c")
#include "ops/cpu/int8_finish.h"
#include "ops/cpu/int8_quantize.h"

namespace blockdraft::cpu {
namespace {

constexpr int kMaxRows = 8;  // of a vector of totals and one of sums each

inline __m512i four_activations(const int8_t* x) {
  int32_t four;
  std::memcpy(&four, x, sizeof(four));
  return _mm512_set1_epi32(four);
}

// A pack with kRows rows. Totals begin at the value that makes up for the offset of the weights' bytes.
template <int kRows>
BLOCKDRAFT_UNWATCHED void multiply_rows(const LinearArgs& args, const Slice& slice, const std::byte* pack,
                                        const Int8Rows& x, int64_t first_row, int64_t n, __mmask16 features) {
  const std::byte* scales = pack + x.groups * kPackGroupCodes;
  __m512 sums[kRows];
  for (int r = 0; r < kRows; ++r) sums[r] = _mm512_setzero_ps();
  for (int64_t g = 0; g < x.groups; ++g) {
    const int8_t* codes = x.codes_of(g, first_row);
    const float* x_scales = x.scales + x.index(g, first_row);
    const int32_t* starts = x.starts + x.index(g, first_row);
    __m512i totals[kRows];
    for (int r = 0; r < kRows; ++r) totals[r] = _mm512_set1_epi32(starts[r]);
    for (int64_t v = 0; v < kInt8Group / 4; ++v) {
      const __m512i weights = _mm512_loadu_si512(pack + g * kPackGroupCodes + v * 64);
      for (int r = 0; r < kRows; ++r) {
        totals[r] = _mm512_dpbusd_epi32(totals[r], weights, four_activations(codes + r * kInt8Group + 4 * v));
      }
    }
    const auto* halves = reinterpret_cast<const __m256i*>(scales + g * kPackGroupScales);
    const __m512 weight_scale = _mm512_cvtph_ps(_mm256_loadu_si256(halves));
    for (int r = 0; r < kRows; ++r) {
      const __m512 scale = _mm512_mul_ps(weight_scale, _mm512_set1_ps(x_scales[r]));
      sums[r] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(totals[r]), scale, sums[r]);
    }
  }
  for (int r = 0; r < kRows; ++r) {
    float* out = args.out.row(first_row + r) + slice.column + n;
    __m512 value = sums[r];
    if (slice.weight.bias != nullptr) {
      value = _mm512_add_ps(value, _mm512_maskz_loadu_ps(features, slice.weight.bias + slice.first + n));
    }
    if (args.accumulate) value = _mm512_add_ps(_mm512_maskz_loadu_ps(features, out), value);
    _mm512_mask_storeu_ps(out, features, value);
  }
}

// multiply_rows for a number of rows known at run time, 1 to kRows.
template <int kRows>
void multiply_some(const LinearArgs& args, const Slice& slice, const std::byte* pack, const Int8Rows& x,
                   int64_t first_row, int64_t rows, int64_t n, __mmask16 features) {
  if constexpr (kRows > 1) {
    if (rows < kRows) return multiply_some<kRows - 1>(args, slice, pack, x, first_row, rows, n, features);
  }
  multiply_rows<kRows>(args, slice, pack, x, first_row, n, features);
}

}  // namespace

void quantize_row_vnni(const float* x, const Int8Rows& rows, int64_t row) { quantize_row(x, rows, row); }

// The rows of a block are nearly the same number in all blocks. A pack stays in the first- or second-level cache while
// rows pass.
void multiply_int8_vnni(const LinearTask& task, const Slice& slice) {
  const LinearArgs& args = task.args;
  const Int8Rows& x = task.int8;
  const int64_t num_rows = args.x.dim(0);
  for_each_pack(slice, [&](const std::byte* pack, int64_t n, int64_t count) {
    const auto features = static_cast<__mmask16>((1u << count) - 1);
    int64_t blocks = (num_rows + kMaxRows - 1) / kMaxRows;
    for (int64_t row = 0; row < num_rows; --blocks) {
      const int64_t rows = (num_rows - row + blocks - 1) / blocks;
      multiply_some<kMaxRows>(args, slice, pack, x, row, rows, n, features);
      row += rows;
    }
  });
}

}  // namespace blockdraft::cpu
BLOCKDRAFT_TARGET_END

#endif
