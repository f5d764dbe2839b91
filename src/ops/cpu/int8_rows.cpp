#include "ops/cpu/int8_rows.h"

#include "base/check.h"
#include "ops/cpu/parallel.h"

namespace blockdraft::cpu {

namespace {

using QuantizeRow = void (*)(const float*, const Int8Rows&, int64_t);

QuantizeRow quantize_row_for(CpuIsa isa) {
#if defined(__x86_64__)
  if (uses_avx512_vnni(isa)) return quantize_row_vnni;
  if (isa >= CpuIsa::avx2) return quantize_row_avx2;
#endif
  CHECK(isa == CpuIsa::portable);
  return quantize_row_portable;
}

// Codes, scales and starts lie behind one another; a group's codes are a multiple of their size.
int64_t floats_of(int64_t rows, int64_t columns) { return rows * (columns / 4 + 2 * (columns / kInt8Group)); }

}  // namespace

size_t int8_rows_bytes(int64_t rows, int64_t columns) { return arena_bytes_f32(floats_of(rows, columns)); }

Int8Rows quantize_rows(Context& context, const ConstTensorView& x) {
  const int64_t rows = x.dim(0);
  Int8Rows result{.rows = rows, .groups = x.dim(1) / kInt8Group};
  float* memory = context.arena->take_f32({floats_of(rows, x.dim(1))}).f32();
  result.codes = reinterpret_cast<int8_t*>(memory);
  result.scales = memory + rows * (x.dim(1) / 4);
  result.starts = reinterpret_cast<int32_t*>(result.scales + rows * result.groups);
  const auto quantize_row = quantize_row_for(context.isa);
  for_each_row(context, rows, x.dim(1) / kRoundedAtOnce, [&](int64_t row) { quantize_row(x.row(row), result, row); });
  return result;
}

}  // namespace blockdraft::cpu
