#include <cmath>

#include "ops/cpu/lanes.h"
#include "ops/cpu/parallel.h"
#include "ops/rms_norm.h"

namespace blockdraft::cpu {

void rms_norm(Context& context, TensorView out, ConstTensorView x, ConstTensorView weight, float eps) {
  const int64_t dim = weight.dim(0);
  const int64_t columns = x.dim(1);
  for_each_row(context, x.dim(0), 2 * columns, [&](int64_t r) {
    for (int64_t first = 0; first < columns; first += dim) {
      const float* values = x.row(r) + first;
      float* result = out.row(r) + first;
      const float mean = dot(values, values, dim) / static_cast<float>(dim);
      const float factor = 1.0f / std::sqrt(mean + eps);
      for (int64_t i = 0; i < dim; ++i) result[i] = values[i] * factor * weight.f32()[i];
    }
  });
}

}  // namespace blockdraft::cpu
