// reduce_group() in terms of a Simd struct (simd_math_avx512.h). Included between BLOCKDRAFT_TARGET_BEGIN and _END, in
// one file per instruction set: everything is local to it.
//
// A key or value vector is loaded once for up to Simd::kMaxRows queries. A score's sum over head_dim runs in
// Simd::kLanes partial sums like a product (linear_kernel.h). The weights of a chunk are summed in lanes by position
// within the chunk. A value's sum over the keys is in sequence. All with one rounding a step.
#pragma once

#include "ops/cpu/simd_exp.h"

namespace blockdraft::cpu {
namespace {

constexpr int64_t kKeys = 4;     // worked on together
constexpr int64_t kColumns = 4;  // vectors of values worked on together
static_assert(kPageSize % kKeys == 0);

// The queries of a list that see some key of a chunk, and a row of scratch for each.
struct Chunk {
  const Head& head;
  Range keys;  // of the whole chunk
  const Query* queries;
  int64_t count;
  float* weights;  // [count, kAttentionChunk] by position: scores, then exp(score - max)
  float* values;   // [count, head_dim]

  Range visible(int64_t query) const { return queries[query].visible.within(keys); }
};

// Scores of kQueries queries from `first` on, without their scale, for the page whose first key is at `position`.
template <class Simd, int kQueries>
void score_page(const Chunk& chunk, int64_t first, int64_t position) {
  const int64_t head_dim = chunk.head.kv.head_dim;
  const float* q[kQueries];
  for (int i = 0; i < kQueries; ++i) q[i] = chunk.queries[first + i].q;
  const float* key = chunk.head.key(position);
  float* scores = chunk.weights + first * kAttentionChunk + (position - chunk.keys.first);
  for (int64_t slot = 0; slot < kPageSize; slot += kKeys, key += kKeys * head_dim, scores += kKeys) {
    typename Simd::Vec sums[kQueries][kKeys];
    for (int i = 0; i < kQueries; ++i) {
      for (int64_t j = 0; j < kKeys; ++j) sums[i][j] = Simd::zero();
    }
    int64_t d = 0;
    for (; d + Simd::kLanes <= head_dim; d += Simd::kLanes) {
      typename Simd::Vec part[kKeys];
      for (int64_t j = 0; j < kKeys; ++j) part[j] = Simd::load(key + j * head_dim + d);
      for (int i = 0; i < kQueries; ++i) {
        const auto value = Simd::load(q[i] + d);
        for (int64_t j = 0; j < kKeys; ++j) sums[i][j] = Simd::multiply_add(part[j], value, sums[i][j]);
      }
    }
    if (d < head_dim) {
      const int64_t rest = head_dim - d;
      for (int i = 0; i < kQueries; ++i) {
        const auto value = Simd::load_first(q[i] + d, rest);
        for (int64_t j = 0; j < kKeys; ++j) {
          sums[i][j] = Simd::multiply_add(Simd::load_first(key + j * head_dim + d, rest), value, sums[i][j]);
        }
      }
    }
    for (int i = 0; i < kQueries; ++i) {
      _mm_storeu_ps(scores + i * kAttentionChunk, Simd::sum_lanes(sums[i][0], sums[i][1], sums[i][2], sums[i][3]));
    }
  }
}

// Whole pages, as far as some query of the chunk sees one of their keys; what is beyond visible keys is not used.
template <class Simd, int kQueries>
void score_queries(const Chunk& chunk, int64_t first) {
  const int64_t begin = chunk.visible(first).first / kPageSize * kPageSize;
  const int64_t end = chunk.visible(first + kQueries - 1).last;
  for (int64_t position = begin; position < end; position += kPageSize) {
    score_page<Simd, kQueries>(chunk, first, position);
  }
}

// What the queries of the chunk become of a query's scores: weights, their sum, and the largest score.
template <class Simd>
void weigh_scores(const Chunk& chunk, int64_t query, Partial& partial) {
  constexpr float kInfinity = __builtin_inff();
  float* row = chunk.weights + query * kAttentionChunk;
  const Range keys = chunk.visible(query);
  const int64_t first = keys.first - chunk.keys.first;
  const int64_t last = keys.last - chunk.keys.first;
  const int64_t begin = first / Simd::kLanes * Simd::kLanes;
  const int64_t end = (last + Simd::kLanes - 1) / Simd::kLanes * Simd::kLanes;
  const auto scale = Simd::broadcast(chunk.head.scale);
  for (int64_t i = begin; i < end; i += Simd::kLanes) Simd::store(row + i, Simd::multiply(Simd::load(row + i), scale));
  for (int64_t i = begin; i < first; ++i) row[i] = -kInfinity;
  for (int64_t i = last; i < end; ++i) row[i] = -kInfinity;
  auto top = Simd::broadcast(-kInfinity);
  for (int64_t i = begin; i < end; i += Simd::kLanes) top = Simd::max(top, Simd::load(row + i));
  partial.max = Simd::max_lane(top);
  const auto max = Simd::broadcast(partial.max);
  auto sum = Simd::zero();
  for (int64_t i = begin; i < end; i += Simd::kLanes) {
    const auto weight = exp_of<Simd>(Simd::subtract(Simd::load(row + i), max));
    Simd::store(row + i, weight);
    sum = Simd::add(sum, weight);
  }
  partial.sum = Simd::sum_lanes(sum);
}

// Adds weights * values of `keys`, in sequence, to kQueries queries from `first` on: the columns from d on, kVectors
// vectors of them or, if columns is not 0, that many.
template <class Simd, int kQueries, int kVectors>
void add_columns(const Chunk& chunk, int64_t first, Range keys, int64_t d, int64_t columns) {
  const int64_t head_dim = chunk.head.kv.head_dim;
  const auto load = [columns](const float* address) {
    return columns == 0 ? Simd::load(address) : Simd::load_first(address, columns);
  };
  const float* weights = chunk.weights + first * kAttentionChunk;
  float* values = chunk.values + first * head_dim + d;
  typename Simd::Vec sums[kQueries][kVectors];
  for (int i = 0; i < kQueries; ++i) {
    for (int v = 0; v < kVectors; ++v) sums[i][v] = load(values + i * head_dim + v * Simd::kLanes);
  }
  for (int64_t position = keys.first; position < keys.last;) {
    const int64_t page_end = (position / kPageSize + 1) * kPageSize;
    const int64_t end = keys.last < page_end ? keys.last : page_end;
    const float* value = chunk.head.value(position) + d;
    for (; position < end; ++position, value += head_dim) {
      typename Simd::Vec part[kVectors];
      for (int v = 0; v < kVectors; ++v) part[v] = load(value + v * Simd::kLanes);
      for (int i = 0; i < kQueries; ++i) {
        const auto weight = Simd::broadcast(weights[i * kAttentionChunk + position - chunk.keys.first]);
        for (int v = 0; v < kVectors; ++v) sums[i][v] = Simd::multiply_add(weight, part[v], sums[i][v]);
      }
    }
  }
  for (int i = 0; i < kQueries; ++i) {
    for (int v = 0; v < kVectors; ++v) {
      float* address = values + i * head_dim + v * Simd::kLanes;
      if (columns == 0) {
        Simd::store(address, sums[i][v]);
      } else {
        Simd::store_first(address, sums[i][v], columns);
      }
    }
  }
}

template <class Simd, int kQueries>
void add_keys(const Chunk& chunk, int64_t first, Range keys) {
  if (keys.empty()) return;
  const int64_t head_dim = chunk.head.kv.head_dim;
  int64_t d = 0;
  for (; d + kColumns * Simd::kLanes <= head_dim; d += kColumns * Simd::kLanes) {
    add_columns<Simd, kQueries, kColumns>(chunk, first, keys, d, 0);
  }
  for (; d + Simd::kLanes <= head_dim; d += Simd::kLanes) add_columns<Simd, kQueries, 1>(chunk, first, keys, d, 0);
  if (d < head_dim) add_columns<Simd, kQueries, 1>(chunk, first, keys, d, head_dim - d);
}

// The keys that all kQueries queries see are taken together, those before and behind for each query alone: a weight of
// zero would not do, since a value that a query does not see may be infinite or NaN.
template <class Simd, int kQueries>
void add_values(const Chunk& chunk, int64_t first) {
  const Range common{chunk.visible(first + kQueries - 1).first, chunk.visible(first).last};
  const int64_t split = common.empty() ? common.first : common.last;
  for (int i = 0; i < kQueries; ++i) {
    const Range keys = chunk.visible(first + i);
    add_keys<Simd, 1>(chunk, first + i, keys.within({keys.first, common.first}));
  }
  add_keys<Simd, kQueries>(chunk, first, common);
  for (int i = 0; i < kQueries; ++i) {
    const Range keys = chunk.visible(first + i);
    add_keys<Simd, 1>(chunk, first + i, keys.within({split, keys.last}));
  }
}

template <class Simd, int kQueries>
void reduce_queries(const Chunk& chunk, int64_t first, int64_t count, Partial* partials) {
  if constexpr (kQueries > 1) {
    if (count < kQueries) return reduce_queries<Simd, kQueries - 1>(chunk, first, count, partials);
  }
  score_queries<Simd, kQueries>(chunk, first);
  for (int i = 0; i < kQueries; ++i) weigh_scores<Simd>(chunk, first + i, partials[first + i]);
  add_values<Simd, kQueries>(chunk, first);
}

// merge() of attention_group.h.
template <class Simd>
void merge_chunk(Partial& into, const Partial& next, int64_t head_dim) {
  if (into.sum == 0.0f) {
    into.max = next.max;
    into.sum = next.sum;
    for (int64_t d = 0; d < head_dim; d += Simd::kLanes) {
      const int64_t count = head_dim - d < Simd::kLanes ? head_dim - d : Simd::kLanes;
      Simd::store_first(into.values + d, Simd::load_first(next.values + d, count), count);
    }
    return;
  }
  const float max = into.max > next.max ? into.max : next.max;
  const auto a = exp_of<Simd>(Simd::broadcast(into.max - max));
  const auto b = exp_of<Simd>(Simd::broadcast(next.max - max));
  const auto both = [a, b](typename Simd::Vec x, typename Simd::Vec y) {
    return Simd::multiply_add(x, a, Simd::multiply(y, b));
  };
  into.max = max;
  Simd::store_first(&into.sum, both(Simd::broadcast(into.sum), Simd::broadcast(next.sum)), 1);
  for (int64_t d = 0; d < head_dim; d += Simd::kLanes) {
    const int64_t count = head_dim - d < Simd::kLanes ? head_dim - d : Simd::kLanes;
    float* values = into.values + d;
    Simd::store_first(values, both(Simd::load_first(values, count), Simd::load_first(next.values + d, count)), count);
  }
}

template <class Simd>
void reduce_chunk(QueryList queries, const Head& head, Range keys, float* scratch) {
  int64_t begin = 0;
  int64_t end = queries.count;
  while (begin < end && queries.items[begin].visible.within(keys).empty()) ++begin;
  while (begin < end && queries.items[end - 1].visible.within(keys).empty()) --end;
  const int64_t head_dim = head.kv.head_dim;
  float* values = scratch + kQueriesPerList * kAttentionChunk;
  const Chunk chunk{head, keys, queries.items + begin, end - begin, scratch, values};
  std::memset(values, 0, static_cast<size_t>(chunk.count * head_dim) * sizeof(float));
  Partial partials[kQueriesPerList];
  int64_t blocks = (chunk.count + Simd::kMaxRows - 1) / Simd::kMaxRows;
  for (int64_t query = 0; query < chunk.count; --blocks) {
    const int64_t count = (chunk.count - query + blocks - 1) / blocks;
    reduce_queries<Simd, Simd::kMaxRows>(chunk, query, count, partials);
    query += count;
  }
  for (int64_t i = 0; i < chunk.count; ++i) {
    partials[i].values = values + i * head_dim;
    merge_chunk<Simd>(queries.items[begin + i].group, partials[i], head_dim);
  }
}

template <class Simd>
void reduce_group(QueryList queries, const Head& head, Range keys, float* scratch) {
  for (int64_t begin = keys.first; begin < keys.last; begin += kAttentionChunk) {
    const int64_t end = begin + kAttentionChunk;
    reduce_chunk<Simd>(queries, head, {begin, end < keys.last ? end : keys.last}, scratch);
  }
}

}  // namespace
}  // namespace blockdraft::cpu
