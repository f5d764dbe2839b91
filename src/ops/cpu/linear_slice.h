// A task of linear(): some output features of one weight, for all rows. One function an instruction set.
#pragma once

#include "ops/linear.h"

namespace blockdraft::cpu {

// Features [first, first + count) of one weight, whose output begins at column `column`.
struct Slice {
  const WeightView& weight;
  int64_t first;
  int64_t count;
  int64_t column;
};

// Writes the slice's columns of args.out as ops/linear.h says. The order of a sum depends on the function and on
// in_features alone.
void multiply_portable(const LinearArgs& args, const Slice& slice);
#if defined(__x86_64__)
void multiply_avx2(const LinearArgs& args, const Slice& slice);
void multiply_avx512(const LinearArgs& args, const Slice& slice);
#endif

}  // namespace blockdraft::cpu
