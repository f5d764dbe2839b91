#include <algorithm>
#include <array>
#include <limits>

#include "ops/attention.h"
#include "ops/cpu/attention_group.h"
#include "ops/cpu/batch.h"
#include "ops/cpu/parallel.h"

// A task is a block, that is a few rows with all query heads of one K/V head: each chunk of keys is loaded once for all
// of them. If there are fewer blocks than threads want, groups of chunks are tasks too, and are merged afterwards.

namespace blockdraft::cpu {

namespace {

constexpr int64_t kGroup = static_cast<int64_t>(kAttentionChunk) * kAttentionChunksPerGroup;
constexpr int64_t kTasksPerThread = 4;

using ReduceGroup = void (*)(QueryList, const Head&, Range, float*);

ReduceGroup reduce_group_for(CpuIsa isa) {
#if defined(__x86_64__)
  if (isa >= CpuIsa::avx512) return reduce_group_avx512;
  if (isa >= CpuIsa::avx2) return reduce_group_avx2;
#endif
  CHECK(isa == CpuIsa::portable);
  return reduce_group_portable;
}

Range visible_keys(const AttentionArgs& args, int64_t position, int64_t end) {
  Range keys{0, args.causal ? position + 1 : end};
  if (args.window > 0) {
    keys.first = std::max<int64_t>(0, position - args.window + 1);
    keys.last = std::min(keys.last, position + args.window);
  }
  return keys;
}

int64_t end_of_sequence(const BatchView& batch, int32_t sequence) {
  return static_cast<int64_t>(batch.positions[batch.first_row[sequence + 1] - 1]) + 1;
}

// The keys that some query sees, from the beginning of a chunk on.
Range seen_by(QueryList queries) {
  return {queries.items[0].visible.first / kAttentionChunk * kAttentionChunk,
          queries.items[queries.count - 1].visible.last};
}

Partial empty_partial(float* values) { return {-std::numeric_limits<float>::infinity(), 0.0f, values}; }

void finish(const AttentionArgs& args, int64_t query, const Partial& total) {
  float* out = args.out.row(query / args.num_heads) + query % args.num_heads * args.kv.head_dim;
  const float factor = 1.0f / total.sum;
  for (int64_t d = 0; d < args.kv.head_dim; ++d) out[d] = total.values[d] * factor;
}

// What is dealt out: blocks, and of each block a number of groups at a time.
struct Plan {
  int64_t rows_per_block;
  int64_t num_blocks;
  Range groups;            // that some row sees
  int64_t groups_at_once;  // 1: a block is one task with all its groups
};

Range visible_groups(const AttentionArgs& args) {
  const BatchView& batch = args.batch;
  Range keys{std::numeric_limits<int64_t>::max(), 0};
  for (int32_t i = 0; i < batch.num_sequences; ++i) {
    if (batch.first_row[i] == batch.first_row[i + 1]) continue;
    const int64_t end = end_of_sequence(batch, i);
    keys.first = std::min(keys.first, visible_keys(args, batch.positions[batch.first_row[i]], end).first);
    keys.last = std::max(keys.last, end);
  }
  return {keys.first / kGroup, (keys.last + kGroup - 1) / kGroup};
}

// As many rows a block as share a chunk well, but fewer if threads would be left without work.
Plan make_plan(const AttentionArgs& args, int num_threads) {
  const int64_t num_rows = args.batch.num_rows;
  const int64_t num_kv_heads = args.kv.num_kv_heads;
  const int64_t tasks = kTasksPerThread * num_threads;
  Plan plan{};
  plan.groups = visible_groups(args);
  const int64_t num_groups = plan.groups.last - plan.groups.first;
  const int64_t most_rows = std::max<int64_t>(1, kQueriesPerList / (args.num_heads / num_kv_heads));
  plan.rows_per_block = std::clamp<int64_t>(num_rows * num_kv_heads * num_groups / tasks, 1, most_rows);
  plan.num_blocks = (num_rows + plan.rows_per_block - 1) / plan.rows_per_block * num_kv_heads;
  plan.groups_at_once = num_threads == 1 ? 1 : std::clamp<int64_t>(tasks / plan.num_blocks, 1, num_groups);
  return plan;
}

// Rows [first, last), all of one sequence, with the query heads of one K/V head, a list at a time.
template <class Use>
void for_each_list_of_rows(const AttentionArgs& args, int32_t kv_head, int32_t sequence, Range rows, const Use& use) {
  const BatchView& batch = args.batch;
  const int64_t head_dim = args.kv.head_dim;
  const int64_t group = args.num_heads / args.kv.num_kv_heads;
  const int64_t end = end_of_sequence(batch, sequence);
  CHECK(end <= static_cast<int64_t>(batch.page_table_stride) * kPageSize);
  const Head head{args.kv, page_table_of(batch, sequence), kv_head, args.scale};
  const int64_t num_queries = (rows.last - rows.first) * group;
  std::array<Query, kQueriesPerList> queries;
  int64_t count = 0;
  for (int64_t i = 0; i < num_queries; ++i) {
    const int64_t row = rows.first + i / group;
    const int64_t query_head = kv_head * group + i % group;
    queries[static_cast<size_t>(count++)] = {args.q.row(row) + query_head * head_dim,
                                             visible_keys(args, batch.positions[row], end),
                                             row * args.num_heads + query_head, empty_partial(nullptr)};
    if (count == kQueriesPerList || i + 1 == num_queries) {
      use(QueryList{queries.data(), count}, head);
      count = 0;
    }
  }
}

// A block, whatever the sequences of its rows.
template <class Use>
void for_each_list(const AttentionArgs& args, const Plan& plan, int64_t block, const Use& use) {
  const int64_t num_kv_heads = args.kv.num_kv_heads;
  int64_t first = block / num_kv_heads * plan.rows_per_block;
  const int64_t last = std::min<int64_t>(args.batch.num_rows, first + plan.rows_per_block);
  int32_t sequence = sequence_of_row(args.batch, first);
  while (first < last) {
    const int64_t end = std::min<int64_t>(last, args.batch.first_row[sequence + 1]);
    if (first < end) {
      for_each_list_of_rows(args, static_cast<int32_t>(block % num_kv_heads), sequence, {first, end}, use);
    }
    first = std::max(first, end);
    ++sequence;
  }
}

// A thread's part of the arena when a block is one task: beside what a group takes, two vectors a query.
int64_t list_scratch_floats(int64_t head_dim) {
  return group_scratch_floats(head_dim) + 2 * kQueriesPerList * head_dim;
}

// All groups of one list.
void attend_list(const AttentionArgs& args, ReduceGroup reduce_group, QueryList queries, const Head& head,
                 float* scratch) {
  const int64_t head_dim = args.kv.head_dim;
  float* values = scratch + group_scratch_floats(head_dim);
  std::array<Partial, kQueriesPerList> totals;
  for (int64_t i = 0; i < queries.count; ++i) {
    totals[static_cast<size_t>(i)] = empty_partial(values + (kQueriesPerList + i) * head_dim);
  }
  const Range keys = seen_by(queries);
  for (int64_t begin = keys.first / kGroup * kGroup; begin < keys.last; begin += kGroup) {
    for (int64_t i = 0; i < queries.count; ++i) queries.items[i].group = empty_partial(values + i * head_dim);
    reduce_group(queries, head, keys.within({begin, begin + kGroup}), scratch);
    for (int64_t i = 0; i < queries.count; ++i) {
      merge(totals[static_cast<size_t>(i)], queries.items[i].group, head_dim);
    }
  }
  for (int64_t i = 0; i < queries.count; ++i) finish(args, queries.items[i].index, totals[static_cast<size_t>(i)]);
}

void attend_blocks(Context& context, const AttentionArgs& args, const Plan& plan) {
  const ReduceGroup reduce_group = reduce_group_for(context.isa);
  const int64_t floats = list_scratch_floats(args.kv.head_dim);
  float* memory = context.arena->take_f32({context.threads->num_threads() * floats}).f32();
  context.threads->parallel_for(plan.num_blocks, [&](int64_t block, int thread) {
    for_each_list(args, plan, block, [&](QueryList queries, const Head& head) {
      attend_list(args, reduce_group, queries, head, memory + thread * floats);
    });
  });
}

// A partial of each query in the arena.
struct Partials {
  float* values;  // [queries, head_dim]
  float* maxima;  // [queries]
  float* sums;    // [queries]
  int64_t head_dim;

  Partial at(int64_t query) const { return {maxima[query], sums[query], values + query * head_dim}; }
  void set(int64_t query, const Partial& partial) const {
    maxima[query] = partial.max;
    sums[query] = partial.sum;
  }
};

Partials take_partials(Arena& arena, int64_t num_queries, int64_t head_dim) {
  float* values = arena.take_f32({num_queries * (head_dim + 2)}).f32();
  float* maxima = values + num_queries * head_dim;
  return {values, maxima, maxima + num_queries, head_dim};
}

void attend_groups(Context& context, const AttentionArgs& args, const Plan& plan) {
  const ReduceGroup reduce_group = reduce_group_for(context.isa);
  const int64_t head_dim = args.kv.head_dim;
  const int64_t num_heads = args.num_heads;
  const int64_t num_queries = args.batch.num_rows * num_heads;
  const int64_t floats = group_scratch_floats(head_dim);
  float* memory = context.arena->take_f32({context.threads->num_threads() * floats}).f32();
  const Partials parts = take_partials(*context.arena, plan.groups_at_once * num_queries, head_dim);
  const Partials totals = take_partials(*context.arena, num_queries, head_dim);
  for (int64_t i = 0; i < num_queries; ++i) totals.set(i, empty_partial(nullptr));

  for (int64_t first = plan.groups.first; first < plan.groups.last; first += plan.groups_at_once) {
    const int64_t count = std::min(plan.groups_at_once, plan.groups.last - first);
    context.threads->parallel_for(plan.num_blocks * count, [&](int64_t task, int thread) {
      const int64_t part = task % count;
      const Range group{(first + part) * kGroup, (first + part + 1) * kGroup};
      for_each_list(args, plan, task / count, [&](QueryList queries, const Head& head) {
        for (int64_t i = 0; i < queries.count; ++i) {
          Query& query = queries.items[i];
          query.group = empty_partial(parts.at(part * num_queries + query.index).values);
        }
        reduce_group(queries, head, seen_by(queries).within(group), memory + thread * floats);
        for (int64_t i = 0; i < queries.count; ++i) {
          parts.set(part * num_queries + queries.items[i].index, queries.items[i].group);
        }
      });
    });
    for_each_row(context, args.batch.num_rows, num_heads * head_dim * count, [&](int64_t row) {
      for (int64_t query = row * num_heads; query < (row + 1) * num_heads; ++query) {
        Partial total = totals.at(query);
        for (int64_t part = 0; part < count; ++part) merge(total, parts.at(part * num_queries + query), head_dim);
        totals.set(query, total);
        if (first + count == plan.groups.last) finish(args, query, total);
      }
    });
  }
}

}  // namespace

void attention(Context& context, const AttentionArgs& args) {
  CHECK(args.kv.dtype == DType::f32);
  if (args.batch.num_rows == 0) return;
  const ArenaScope scope(*context.arena);
  const Plan plan = make_plan(args, context.threads->num_threads());
  if (plan.groups_at_once > 1) {
    attend_groups(context, args, plan);
  } else {
    attend_blocks(context, args, plan);
  }
}

}  // namespace blockdraft::cpu

namespace blockdraft {

// Of the two ways the larger. Groups at once are at most tasks / blocks, and a block has at most as many queries as a
// list or a row.
size_t attention_scratch_bytes(int32_t num_threads, int64_t max_rows, int32_t num_heads, int32_t head_dim) {
  const int64_t tasks = cpu::kTasksPerThread * num_threads;
  const int64_t block = std::max<int64_t>(cpu::kQueriesPerList, num_heads);
  const int64_t num_queries = std::min(max_rows * num_heads, tasks * block);
  const int64_t num_parts = std::min(tasks * num_queries, tasks * block);
  const size_t blocks = arena_bytes_f32(num_threads * cpu::list_scratch_floats(head_dim));
  const size_t groups = arena_bytes_f32(num_threads * cpu::group_scratch_floats(head_dim)) +
                        arena_bytes_f32(num_parts * (head_dim + 2)) + arena_bytes_f32(num_queries * (head_dim + 2));
  return num_threads == 1 ? blocks : std::max(blocks, groups);
}

}  // namespace blockdraft
