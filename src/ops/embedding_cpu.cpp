#include "ops/cpu/decode.h"
#include "ops/cpu/parallel.h"
#include "ops/embedding.h"

namespace blockdraft::cpu {

void embedding(Context& context, TensorView out, const int32_t* ids, const WeightView& table, float scale) {
  const int64_t width = table.in_features;
  for_each_row(context, out.dim(0), width, [&](int64_t r) {
    const int32_t id = ids[r];
    CHECK(id >= 0 && id < table.out_features);
    float* values = out.row(r);
    decode_row(table, id, values);
    if (scale != 1.0f) {
      for (int64_t i = 0; i < width; ++i) values[i] *= scale;
    }
  });
}

}  // namespace blockdraft::cpu
