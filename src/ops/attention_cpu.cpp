#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "ops/attention.h"
#include "ops/cpu/batch.h"
#include "ops/cpu/lanes.h"

// A task is a few rows with all query heads of one K/V head: each chunk of keys is loaded once for all of them.

namespace blockdraft::cpu {

namespace {

constexpr int64_t kQueriesPerTask = 32;
constexpr int64_t kTasksPerThread = 4;

// The softmax-weighted sum of some keys' values, not yet divided by the sum of the weights exp(score - max).
// sum is 0 as long as no key was seen.
struct Partial {
  float max;
  float sum;
  float* values;  // [head_dim]
};

struct Range {
  int64_t first;
  int64_t last;  // one past
};

struct Query {
  const float* q;
  float* out;
  Range visible;
  Partial group;  // the chunks of the current group
  Partial total;  // the groups before it
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
  const float* key(int64_t position) const { return kv.k + offset(position); }
  const float* value(int64_t position) const { return kv.v + offset(position); }
};

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

// into = into and next, next the later one.
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

Partial empty_partial(float* values) { return {-std::numeric_limits<float>::infinity(), 0.0f, values}; }

// A thread's part of the arena.
struct Scratch {
  Partial chunk;
  float* scores;
  float* partials;  // two vectors a query
};

int64_t scratch_floats(int64_t num_queries, int64_t head_dim) {
  return kAttentionChunk + head_dim + 2 * num_queries * head_dim;
}

Scratch scratch_at(float* memory, int64_t head_dim) {
  return {{0.0f, 0.0f, memory + kAttentionChunk}, memory, memory + kAttentionChunk + head_dim};
}

Range visible_keys(const AttentionArgs& args, int64_t position, int64_t end) {
  Range keys{0, args.causal ? position + 1 : end};
  if (args.window > 0) {
    keys.first = std::max<int64_t>(0, position - args.window + 1);
    keys.last = std::min(keys.last, position + args.window);
  }
  return keys;
}

// The queries of one sequence in a task, in order of their rows.
struct QueryList {
  Query* items;
  int64_t count;
};

void attend(QueryList queries, const Head& head, Scratch& scratch) {
  constexpr int64_t kGroup = static_cast<int64_t>(kAttentionChunk) * kAttentionChunksPerGroup;
  const int64_t head_dim = head.kv.head_dim;
  // Rows are in order of position, so the first sees farthest back and the last farthest on.
  const int64_t first = queries.items[0].visible.first / kAttentionChunk * kAttentionChunk;
  const int64_t last = queries.items[queries.count - 1].visible.last;
  for (int64_t begin = first; begin < last; begin += kAttentionChunk) {
    const int64_t end = begin + kAttentionChunk;
    for (int64_t i = 0; i < queries.count; ++i) {
      Query& query = queries.items[i];
      const Range keys{std::max(begin, query.visible.first), std::min(end, query.visible.last)};
      if (keys.first < keys.last) {
        reduce_chunk(scratch.chunk, scratch.scores, query.q, head, keys);
        merge(query.group, scratch.chunk, head_dim);
      }
      if (end % kGroup == 0 || end >= last) {
        merge(query.total, query.group, head_dim);
        query.group = empty_partial(query.group.values);
      }
    }
  }
  for (int64_t i = 0; i < queries.count; ++i) {
    const Partial& total = queries.items[i].total;
    const float factor = 1.0f / total.sum;
    for (int64_t d = 0; d < head_dim; ++d) queries.items[i].out[d] = total.values[d] * factor;
  }
}

// Rows [first, last), all of one sequence, with the query heads of one K/V head.
void attend_rows(const AttentionArgs& args, int32_t kv_head, int32_t sequence, int64_t first, int64_t last,
                 Scratch& scratch) {
  const BatchView& batch = args.batch;
  const int64_t head_dim = args.kv.head_dim;
  const int64_t group = args.num_heads / args.kv.num_kv_heads;
  const int64_t end = static_cast<int64_t>(batch.positions[batch.first_row[sequence + 1] - 1]) + 1;
  CHECK(end <= static_cast<int64_t>(batch.page_table_stride) * kPageSize);
  const Head head{args.kv, page_table_of(batch, sequence), kv_head, args.scale};
  std::array<Query, kQueriesPerTask> queries;
  int64_t count = 0;
  for (int64_t i = 0; i < (last - first) * group; ++i) {
    const int64_t row = first + i / group;
    const int64_t column = (kv_head * group + i % group) * head_dim;
    float* values = scratch.partials + 2 * count * head_dim;
    queries[static_cast<size_t>(count++)] = {args.q.row(row) + column, args.out.row(row) + column,
                                             visible_keys(args, batch.positions[row], end), empty_partial(values),
                                             empty_partial(values + head_dim)};
    if (count == kQueriesPerTask || i + 1 == (last - first) * group) {
      attend({queries.data(), count}, head, scratch);
      count = 0;
    }
  }
}

// Rows [first, last) of the batch, whatever their sequences.
void attend_batch_rows(const AttentionArgs& args, int32_t kv_head, int64_t first, int64_t last, Scratch& scratch) {
  int32_t sequence = sequence_of_row(args.batch, first);
  while (first < last) {
    const int64_t end = std::min<int64_t>(last, args.batch.first_row[sequence + 1]);
    if (first < end) attend_rows(args, kv_head, sequence, first, end, scratch);
    first = std::max(first, end);
    ++sequence;
  }
}

// As many rows as share a chunk well, but fewer if threads would be left without work.
int64_t rows_per_task(const AttentionArgs& args, int num_threads) {
  const int64_t group = args.num_heads / args.kv.num_kv_heads;
  const int64_t tasks = kTasksPerThread * num_threads;
  const int64_t rows = static_cast<int64_t>(args.batch.num_rows) * args.kv.num_kv_heads / tasks;
  return std::clamp<int64_t>(rows, 1, std::max<int64_t>(1, kQueriesPerTask / group));
}

}  // namespace

void attention(Context& context, const AttentionArgs& args) {
  const int64_t num_rows = args.batch.num_rows;
  if (num_rows == 0) return;
  const int num_threads = context.threads->num_threads();
  const int64_t head_dim = args.kv.head_dim;
  const int64_t num_queries = std::min(kQueriesPerTask, num_rows * args.num_heads);
  const int64_t floats = scratch_floats(num_queries, head_dim);
  const ArenaScope scope(*context.arena);
  float* memory = context.arena->take_f32({num_threads * floats}).f32();

  const int64_t rows = rows_per_task(args, num_threads);
  const int64_t num_kv_heads = args.kv.num_kv_heads;
  const int64_t num_tasks = (num_rows + rows - 1) / rows * num_kv_heads;
  context.threads->parallel_for(num_tasks, [&](int64_t task, int thread) {
    const int64_t first = task / num_kv_heads * rows;
    Scratch scratch = scratch_at(memory + thread * floats, head_dim);
    attend_batch_rows(args, static_cast<int32_t>(task % num_kv_heads), first, std::min(num_rows, first + rows),
                      scratch);
  });
}

}  // namespace blockdraft::cpu

namespace blockdraft {

size_t attention_scratch_bytes(int32_t num_threads, int64_t max_rows, int32_t num_heads, int32_t head_dim) {
  const int64_t num_queries = std::min(cpu::kQueriesPerTask, max_rows * num_heads);
  return arena_bytes_f32(num_threads * cpu::scratch_floats(num_queries, head_dim));
}

}  // namespace blockdraft
