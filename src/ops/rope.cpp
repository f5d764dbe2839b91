#include "ops/rope.h"

#include "ops/check_views.h"
#include "ops/dispatch.h"

namespace blockdraft {

void rope_table(Context& context, TensorView table, const int32_t* positions, ConstTensorView inv_freq,
                float attention_factor) {
  CHECK(is_f32_matrix(table) && is_f32_vector(inv_freq) && table.dim(1) == 2 * inv_freq.dim(0));
  CHECK(positions != nullptr || table.dim(0) == 0);
  BLOCKDRAFT_DISPATCH(context, rope_table(context, table, positions, inv_freq, attention_factor));
}

void rope(Context& context, TensorView x, ConstTensorView table) {
  CHECK(is_f32_matrix(x) && is_f32_matrix(table));
  CHECK(x.dim(0) == table.dim(0) && table.dim(1) > 0 && table.dim(1) % 2 == 0 && x.dim(1) % table.dim(1) == 0);
  BLOCKDRAFT_DISPATCH(context, rope(context, x, table));
}

}  // namespace blockdraft
