#include <algorithm>
#include <cmath>

#include "ops/cpu/attention_group.h"
#include "ops/cpu/lanes.h"

namespace blockdraft::cpu {

namespace {

// Calls body(position, count) for each run of keys that is contiguous in memory.
template <class Body>
void for_each_run(Range keys, const Body& body) {
  for (int64_t position = keys.first; position < keys.last;) {
    const int64_t end = std::min(keys.last, (position / kPageSize + 1) * kPageSize);
    body(position, end - position);
    position = end;
  }
}

// scores[i] = scale * q . key[i]
template <int kKeys>
void score_keys(float* scores, const float* q, const float* keys, int64_t head_dim, float scale) {
  Lanes sums[kKeys];
  const int64_t part = lane_part(head_dim);
  add_products<1, kKeys>(sums, kKeys, q, 0, keys, head_dim, part);
  for (int i = 0; i < kKeys; ++i) {
    const float* key = keys + i * head_dim;
    scores[i] = add_tail(sum_of(sums[i]), q + part, key + part, head_dim - part) * scale;
  }
}

void score(float* scores, const float* q, const Head& head, Range keys) {
  const int64_t head_dim = head.kv.head_dim;
  for_each_run(keys, [&](int64_t position, int64_t count) {
    const float* key = head.key(position);
    float* run = scores + (position - keys.first);
    int64_t i = 0;
    for (; i + 4 <= count; i += 4) score_keys<4>(run + i, q, key + i * head_dim, head_dim, head.scale);
    for (; i < count; ++i) score_keys<1>(run + i, q, key + i * head_dim, head_dim, head.scale);
  });
}

// values[d .. d + 4 kVectors) = sum over keys of weights * value vectors, each key in order.
template <int kVectors>
BLOCKDRAFT_UNWATCHED void weigh_columns(float* values, const float* weights, const Head& head, Range keys, int64_t d) {
  Vec4 sums[kVectors] = {};
  const int64_t head_dim = head.kv.head_dim;
  for_each_run(keys, [&](int64_t position, int64_t count) {
    const float* value = head.value(position) + d;
    const float* run = weights + (position - keys.first);
    for (int64_t i = 0; i < count; ++i, value += head_dim) {
      const Vec4 weight = broadcast4(run[i]);
      for (int v = 0; v < kVectors; ++v) sums[v] += weight * load4(value + 4 * v);
    }
  });
  for (int v = 0; v < kVectors; ++v) store4(values + d + 4 * v, sums[v]);
}

void weigh_column(float* values, const float* weights, const Head& head, Range keys, int64_t d) {
  float sum = 0.0f;
  for (int64_t p = keys.first; p < keys.last; ++p) sum += weights[p - keys.first] * head.value(p)[d];
  values[d] = sum;
}

void weigh(float* values, const float* weights, const Head& head, Range keys) {
  const int64_t head_dim = head.kv.head_dim;
  int64_t d = 0;
  for (; d + 32 <= head_dim; d += 32) weigh_columns<8>(values, weights, head, keys, d);
  for (; d + 4 <= head_dim; d += 4) weigh_columns<1>(values, weights, head, keys, d);
  for (; d < head_dim; ++d) weigh_column(values, weights, head, keys, d);
}

// The keys of one chunk. scores: room for kAttentionChunk floats.
void reduce_chunk(Partial& chunk, float* scores, const float* q, const Head& head, Range keys) {
  score(scores, q, head, keys);
  const int64_t count = keys.last - keys.first;
  chunk.max = *std::max_element(scores, scores + count);
  chunk.sum = 0.0f;
  for (int64_t i = 0; i < count; ++i) {
    scores[i] = std::exp(scores[i] - chunk.max);
    chunk.sum += scores[i];
  }
  weigh(chunk.values, scores, head, keys);
}

}  // namespace

void merge(Partial& into, const Partial& next, int64_t head_dim) {
  if (next.sum == 0.0f) return;
  if (into.sum == 0.0f) {
    into.max = next.max;
    into.sum = next.sum;
    std::copy_n(next.values, head_dim, into.values);
    return;
  }
  const float max = std::max(into.max, next.max);
  const float a = std::exp(into.max - max);
  const float b = std::exp(next.max - max);
  into.max = max;
  into.sum = into.sum * a + next.sum * b;
  for (int64_t d = 0; d < head_dim; ++d) into.values[d] = into.values[d] * a + next.values[d] * b;
}

// Chunk after chunk for all queries: each chunk of keys comes out of memory once.
void reduce_group_portable(QueryList queries, const Head& head, Range keys, float* scratch) {
  Partial chunk{0.0f, 0.0f, scratch + kAttentionChunk};
  for (int64_t begin = keys.first; begin < keys.last; begin += kAttentionChunk) {
    for (int64_t i = 0; i < queries.count; ++i) {
      Query& query = queries.items[i];
      const Range visible = query.visible.within({begin, std::min(keys.last, begin + kAttentionChunk)});
      if (visible.empty()) continue;
      reduce_chunk(chunk, scratch, query.q, head, visible);
      merge(query.group, chunk, head.kv.head_dim);
    }
  }
}

}  // namespace blockdraft::cpu
