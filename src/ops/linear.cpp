#include "ops/linear.h"

#include "ops/check_views.h"
#include "ops/check_weight.h"

namespace blockdraft {

namespace {

const float* end_of(const ConstTensorView& view) { return view.row(view.dim(0) - 1) + view.dim(1); }

bool overlap(const ConstTensorView& a, const ConstTensorView& b) {
  if (a.shape.num_elements() == 0 || b.shape.num_elements() == 0) return false;
  return a.f32() < end_of(b) && b.f32() < end_of(a);
}

// Columns of one buffer may be the input and other columns of it the output: rows interleave without overlapping.
bool interleave(const ConstTensorView& a, const ConstTensorView& b) {
  if (a.row_stride != b.row_stride || a.row_stride <= 0) return false;
  const int64_t shift = ((b.f32() - a.f32()) % a.row_stride + a.row_stride) % a.row_stride;
  return shift >= a.dim(1) && shift + b.dim(1) <= a.row_stride;
}

}  // namespace

void linear(Context& context, const LinearArgs& args) {
  CHECK(is_f32_matrix(args.out) && is_f32_matrix(args.x) && args.out.dim(0) == args.x.dim(0));
  int64_t columns = 0;
  for (const WeightView& weight : args.weights) {
    CHECK(is_valid_weight(weight) && weight.in_features == args.x.dim(1));
    columns += weight.out_features;
  }
  CHECK(columns == args.out.dim(1));
  CHECK(!overlap(args.out, args.x) || interleave(args.out, args.x));
  cpu::linear(context, args);
}

}  // namespace blockdraft
