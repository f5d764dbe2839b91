// The part of attention() that is written once an instruction set: some queries of one K/V head over a group of chunks.
#pragma once

#include <cstdint>

#include "base/check.h"
#include "ops/attention.h"

namespace blockdraft::cpu {

inline constexpr int64_t kQueriesPerList = 32;

// The softmax-weighted sum of some keys' values, not yet divided by the sum of the weights exp(score - max).
// sum is 0 as long as no key was seen, and max and values mean nothing then.
struct Partial {
  float max;
  float sum;
  float* values;  // [head_dim]
};

// into = into and next, next the later one.
void merge(Partial& into, const Partial& next, int64_t head_dim);

// Absolute positions.
struct Range {
  int64_t first;
  int64_t last;  // one past

  bool empty() const { return last <= first; }
  Range within(Range other) const {
    return {first > other.first ? first : other.first, last < other.last ? last : other.last};
  }
};

struct Query {
  const float* q;
  Range visible;
  int64_t index;  // row * heads + head
  Partial group;  // the chunks of the group that were seen
};

// Queries of one sequence in order of their rows: the first sees farthest back, the last farthest on.
struct QueryList {
  Query* items;
  int64_t count;  // kQueriesPerList at most
};

// One K/V head of one sequence.
struct Head {
  const PagedKvView& kv;
  const int32_t* page_table;
  int32_t index;
  float scale;

  int64_t offset(int64_t position) const {
    const int32_t page = page_table[position / kPageSize];
    DCHECK(page >= 0 && page < kv.num_pages);
    return kv.offset(page, index, static_cast<int32_t>(position % kPageSize));
  }
  const float* key(int64_t position) const { return kv.k_f32() + offset(position); }
  const float* value(int64_t position) const { return kv.v_f32() + offset(position); }
};

// Puts the keys of one group, those visible, into the empty query.group of each query. `keys` begins with a chunk. The
// order is that of ops/attention.h; how one key's score and the sum over a chunk run depends on the function alone.
// scratch: group_scratch_floats(head_dim) floats.
void reduce_group_portable(QueryList queries, const Head& head, Range keys, float* scratch);
#if defined(__x86_64__)
void reduce_group_avx2(QueryList queries, const Head& head, Range keys, float* scratch);
void reduce_group_avx512(QueryList queries, const Head& head, Range keys, float* scratch);
#endif

inline int64_t group_scratch_floats(int64_t head_dim) { return kQueriesPerList * (kAttentionChunk + head_dim); }

}  // namespace blockdraft::cpu
