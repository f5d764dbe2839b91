// Activations as int8, for products with int8 weights.
//
// Of each group of kInt8Group columns of a row, with m its largest magnitude, in float32:
//   scale = m / 127;  code = x / scale to nearest even
// A group of zeros, or one whose scale would be subnormal, has scale and codes 0. One with a value that is not finite
// has scale NaN and codes 0, so that its products are NaN.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/context.h"
#include "tensor/int8_pack.h"
#include "tensor/tensor_view.h"

namespace blockdraft::cpu {

// Rows that were quantized; borrowed. Group after group, and in it row after row: a block of rows finds all that it
// needs of a group side by side.
struct Int8Rows {
  int64_t rows = 0;
  int64_t groups = 0;
  int8_t* codes = nullptr;    // [groups, rows, kInt8Group]
  float* scales = nullptr;    // [groups, rows]
  int32_t* starts = nullptr;  // [groups, rows]: -kInt8Offset times the sum of the group's codes, which makes up for the
                              // offset of the weights' codes

  int64_t index(int64_t group, int64_t row) const { return group * rows + row; }
  int8_t* codes_of(int64_t group, int64_t row) const { return codes + index(group, row) * kInt8Group; }
};

// Arena bytes that Int8Rows takes.
size_t int8_rows_bytes(int64_t rows, int64_t columns);

// Quantizes all rows of x into memory of the context's arena.
Int8Rows quantize_rows(Context& context, const ConstTensorView& x);

// One row; a function for each instruction set, all of the same bits.
void quantize_row_portable(const float* x, const Int8Rows& rows, int64_t row);
#if defined(__x86_64__)
void quantize_row_avx2(const float* x, const Int8Rows& rows, int64_t row);
void quantize_row_vnni(const float* x, const Int8Rows& rows, int64_t row);
#endif

}  // namespace blockdraft::cpu
