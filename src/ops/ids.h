// Token ids on their way from one op to the next, which on a card the CPU does not see.
#pragma once

#include <cstdint>

#include "tensor/context.h"

namespace blockdraft {

// out[i] = ids[index[i]], i < count; where index[i] is negative, out[i] stays.
//   index: [count].  out: [count]; must not overlap ids.
void gather_ids(Context& context, int32_t* out, const int32_t* ids, const int32_t* index, int64_t count);

// ids[i] = table[ids[i]], i < count, in place; negative ids stay. table null: all stay.
// newest, if not null: newest[i] = the ids[i] that results, unless it is negative.
//   table: [vocabulary] with an entry for each id.
void map_ids(Context& context, int32_t* ids, const int32_t* table, int32_t* newest, int64_t count);

namespace cpu {
void gather_ids(Context& context, int32_t* out, const int32_t* ids, const int32_t* index, int64_t count);
void map_ids(Context& context, int32_t* ids, const int32_t* table, int32_t* newest, int64_t count);
}  // namespace cpu
namespace cu {
void gather_ids(Context& context, int32_t* out, const int32_t* ids, const int32_t* index, int64_t count);
void map_ids(Context& context, int32_t* ids, const int32_t* table, int32_t* newest, int64_t count);
}  // namespace cu

}  // namespace blockdraft
