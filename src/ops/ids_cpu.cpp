#include "ops/ids.h"

namespace blockdraft::cpu {

void gather_ids(Context&, int32_t* out, const int32_t* ids, const int32_t* index, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    if (index[i] >= 0) out[i] = ids[index[i]];
  }
}

void map_ids(Context&, int32_t* ids, const int32_t* table, int32_t* newest, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    if (ids[i] < 0) continue;
    if (table != nullptr) ids[i] = table[ids[i]];
    if (newest != nullptr) newest[i] = ids[i];
  }
}

}  // namespace blockdraft::cpu
