#include <algorithm>

#include "ops/copy_rows.h"
#include "ops/cpu/parallel.h"

namespace blockdraft::cpu {

void copy_rows(Context& context, TensorView out, ConstTensorView x, const int32_t* index) {
  for_each_row(context, out.dim(0), out.dim(1), [&](int64_t r) {
    const int64_t from = index == nullptr ? r : index[r];
    CHECK(from >= 0 && from < x.dim(0));
    std::copy_n(x.row(from), x.dim(1), out.row(r));
  });
}

void set_zero(Context&, TensorView out) { std::fill_n(out.f32(), out.shape.num_elements(), 0.0f); }

}  // namespace blockdraft::cpu
