#include "ops/ids.h"

#include "base/check.h"
#include "ops/dispatch.h"

namespace blockdraft {

void gather_ids(Context& context, int32_t* out, const int32_t* ids, const int32_t* index, int64_t count) {
  CHECK(count == 0 || (out != nullptr && ids != nullptr && index != nullptr));
  BLOCKDRAFT_DISPATCH(context, gather_ids(context, out, ids, index, count));
}

void map_ids(Context& context, int32_t* ids, const int32_t* table, int32_t* newest, int64_t count) {
  CHECK(count == 0 || ids != nullptr);
  if (table == nullptr && newest == nullptr) return;
  BLOCKDRAFT_DISPATCH(context, map_ids(context, ids, table, newest, count));
}

}  // namespace blockdraft
