#include <algorithm>
#include <type_traits>

#include "ops/attention.h"
#include "ops/cuda/attention_loader.cuh"
#include "ops/cuda/attention_merge.cuh"
#include "ops/cuda/attention_plan.cuh"
#include "ops/cuda/attention_warp.cuh"
#include "ops/cuda/launch.h"
#include "ops/cuda/overlap.cuh"
#include "ops/cuda/support.h"

// A warp has 16 queries (rows with the query heads of one K/V head) and goes through chunks of 128 keys: all scores of
// a chunk, their largest, their exponentials rounded to BF16, then the values. Sums over a chunk run in the order of
// its pages, chunks are merged in order within a group, groups in order. Which team has which chunks, and how many
// queries it has, changes no result. Head dimensions above 128 are the work of two warps, each with half of the values.
//
// There are two kernels with the same arithmetic: for few queries a warp alone is a team, and there are many teams;
// otherwise teams of up to four warps share what they copy.

namespace blockdraft::cu {

namespace {

constexpr int kBlocksPerMultiprocessor = 2;

// kFew: tiles of 16 queries.
template <int kHeadDim, bool kFew>
struct Variant {
  static constexpr bool kIsWide = kHeadDim > 128;  // registers and shared memory are short
  static constexpr bool kGroupsShared = kIsWide;
  static constexpr int kSlotPages = kFew || kIsWide ? 2 : 4;
  static constexpr int kPagesPerWarp = kIsWide ? 2 : kHeadDim > 64 ? 6 : 12;  // of the rings
  static constexpr int kMinTeam = kFew ? 1 : 2;
  static constexpr int kMaxQueries = kFew ? 16 : 16 * kAttentionWarps / Tiling<kHeadDim>::kSlices;  // of a tile
  static constexpr int kRingBytes = kAttentionWarps * kPagesPerWarp * Tiling<kHeadDim>::kPageBytes;
  static constexpr int kGroupBytes = kGroupsShared ? kAttentionThreads * Tiling<kHeadDim>::kValues * 2 : 0;
  static_assert(!kFew || Tiling<kHeadDim>::kSlices == 1);
};

// Of a ring, if all teams of a block have their own.
template <int kHeadDim, bool kFew, int kTeam>
constexpr int slots_of_team() {
  using Kernel = Variant<kHeadDim, kFew>;
  return Kernel::kPagesPerWarp * kTeam / Kernel::kSlotPages;
}

template <int kTeam>
__device__ void meet(int team) {
  if constexpr (kTeam == 1) {
    __syncwarp();
  } else {
    barrier(1 + team, kTeam * 32);
  }
}

// Calls body(constant) with the first page of each slot of a chunk.
template <int kSlotPages, class Body>
__device__ void for_each_slot(const Body& body) {
  static_assert(kPagesPerChunk == 8 && (kSlotPages == 2 || kSlotPages == 4));
  body(std::integral_constant<int, 0>());
  if constexpr (kSlotPages == 2) body(std::integral_constant<int, 2>());
  body(std::integral_constant<int, 4>());
  if constexpr (kSlotPages == 2) body(std::integral_constant<int, 6>());
}

// The ring has `slots` places: those of one team, or of all teams of the block.
template <int kHeadDim, bool kFew, int kTeam>
__device__ void attend(const AttentionCall& call, const AttentionPlan& plan, const Unit& unit, uint32_t ring, int slots,
                       float4* group_memory) {
  using Shape = Tiling<kHeadDim>;
  using Kernel = Variant<kHeadDim, kFew>;
  constexpr int kSlotPages = Kernel::kSlotPages;
  constexpr int kSlots = slots_of_team<kHeadDim, kFew, kTeam>();
  constexpr int kMostSlots = kSlots * (kAttentionWarps / kTeam);
  static_assert(kSlots >= 2);
  const int warp = static_cast<int>(threadIdx.x) / 32 % kTeam;
  const int team = static_cast<int>(threadIdx.x) / 32 / kTeam;
  const int tile = warp / Shape::kSlices;
  const int slice = warp % Shape::kSlices;

  // Keys that are older than the batch need not wait for its own.
  const bool is_early = call.early && unit.end_chunk * kAttentionChunk <= unit.range.first_position;
  if (!is_early) wait_for_predecessor();
  Loader<kHeadDim, kTeam, kSlotPages> loader(call, unit, warp, ring, slots);
  for (int i = 0; i + 1 < slots; ++i) loader.load();
  wait_for_predecessor();
  const LaneQueries queries = queries_of_lane(call, unit, tile);
  uint32_t fragments[Shape::kSteps][4];
  load_queries<kHeadDim>(fragments, call, queries);

  // The next slot of the ring, once all of the team have copied their rows; the slot before it is free then.
  int slot = slots - 1;
  const auto next_slot = [&] {
    if (slots == kSlots) {
      wait_for_copies_but<kSlots - 2>();
    } else {
      wait_for_copies_but<kMostSlots - 2>();
    }
    meet<kTeam>(team);
    loader.load();
    slot = slot + 1 == slots ? 0 : slot + 1;
    return ring + static_cast<uint32_t>(slot * kSlotPages * Shape::kPageBytes);
  };

  PartialHead totals[2];
  Group<kHeadDim, Kernel::kGroupsShared> group;
  group.memory = group_memory;
  group.clear();
  bool is_first_group = true;
#pragma unroll 1
  for (int chunk = unit.first_chunk; chunk < unit.end_chunk; ++chunk) {
    float scores[2 * kPagesPerChunk][4];
    for_each_slot<kSlotPages>([&](auto page) {
      score_slot<kHeadDim, kSlotPages, 2 * decltype(page)::value>(scores, fragments, next_slot());
    });
    if (!see_all(queries, chunk * kAttentionChunk)) mask_scores(scores, queries, chunk * kAttentionChunk);
    PartialHead heads[2];
    uint32_t weights[kPagesPerChunk][4];
    weigh_scores(heads, weights, scores, call.scale_log2);
    Values<kHeadDim> values = {};
    for_each_slot<kSlotPages>([&](auto page) {
      weigh_slot<kHeadDim, kSlotPages, decltype(page)::value>(values, weights, next_slot(), slice);
    });
    group.add(heads, values);
    const bool is_last = chunk + 1 == unit.end_chunk;
    if (!unit.is_whole || !(is_last || (chunk + 1) % kChunksPerGroup == 0)) continue;
    put_group(call, queries, totals, group, slice, is_first_group, is_last);
    is_first_group = false;
    group.clear();
  }
  if (!unit.is_whole) put_partial(call, plan, unit, tile, group, slice);
  // The ring is the next unit's.
  wait_for_copies_but<0>();
  meet<kTeam>(team);
}

template <int kHeadDim, bool kFew, int kTeam>
__device__ void attend_units(const AttentionCall& call, const AttentionPlan& plan, const int* units_before,
                             std::byte* memory) {
  using Kernel = Variant<kHeadDim, kFew>;
  constexpr int kTeams = kAttentionWarps / kTeam;
  const auto thread = static_cast<int>(threadIdx.x);
  const int team = thread / 32 / kTeam;
  const uint32_t ring = shared_address(memory) + static_cast<uint32_t>(team * (Kernel::kRingBytes / kTeams));
  float4* group_memory = reinterpret_cast<float4*>(memory + Kernel::kRingBytes) +
                         thread / 32 * (Kernel::kGroupBytes / kAttentionWarps / 16) + thread % 32;
  // If there is a unit for each block at most, its first team has all of the memory, so that more of its keys are on
  // their way at once.
  const int slots = slots_of_team<kHeadDim, kFew, kTeam>() * (plan.total_units <= call.num_blocks ? kTeams : 1);
  // Neighbouring units go to different blocks, that is to different multiprocessors.
  for (int unit = team * call.num_blocks + static_cast<int>(blockIdx.x); unit < plan.total_units;
       unit += call.num_blocks * kTeams) {
    attend<kHeadDim, kFew, kTeam>(call, plan, unit_of<kHeadDim>(call, plan, units_before, unit), ring, slots,
                                  group_memory);
  }
}

template <int kHeadDim, bool kFew>
__global__ void __launch_bounds__(kAttentionThreads, kBlocksPerMultiprocessor)
    attend_kernel(const __grid_constant__ AttentionCall call) {
  extern __shared__ __align__(1024) std::byte memory[];
  __shared__ int units_before[kMaxSequences];
  // In this order, for the kernel that merges looks at the batch before it waits; early, nobody has to wait for that.
  if (!call.early) wait_for_predecessor();
  let_successor_begin();
  const AttentionPlan plan = make_plan<kHeadDim>(call, units_before);
  if constexpr (kFew) {
    attend_units<kHeadDim, kFew, 1>(call, plan, units_before, memory);
  } else if (plan.team_warps == 4) {
    attend_units<kHeadDim, kFew, 4>(call, plan, units_before, memory);
  } else {
    attend_units<kHeadDim, kFew, 2>(call, plan, units_before, memory);
  }
  wait_for_predecessor();  // who had no unit
}

// Lanes load and store two columns at a time.
bool is_in_pairs(const ConstTensorView& view) {
  return view.data == nullptr || (reinterpret_cast<uintptr_t>(view.data) % (2 * size_of(view.dtype)) == 0 &&
                                  (view.dim(0) <= 1 || view.row_stride % 2 == 0));
}

template <int kHeadDim, bool kFew>
void run(Context& context, const AttentionArgs& args, AttentionCall call) {
  using Kernel = Variant<kHeadDim, kFew>;
  CHECK(call.heads_per_kv_head <= Kernel::kMaxQueries);
  call.rows_per_tile = Kernel::kMaxQueries / call.heads_per_kv_head;
  call.min_team_warps = Kernel::kMinTeam;
  call.num_blocks = context.cuda->num_multiprocessors() * kBlocksPerMultiprocessor;
  launch(context, "attention",
         in_chain(static_cast<unsigned>(call.num_blocks), kAttentionThreads, Kernel::kRingBytes + Kernel::kGroupBytes),
         attend_kernel<kHeadDim, kFew>, call);
  launch(context, "attention",
         in_chain({static_cast<unsigned>(args.batch.num_rows), static_cast<unsigned>(args.num_heads)}, kMergeThreads),
         merge_kernel<kHeadDim>, call);
}

// Few queries of a K/V head in every sequence, if every sequence has a row. If not, the result is the same.
bool are_few(const AttentionArgs& args) {
  const int32_t rows = std::max(1, args.batch.num_rows - args.batch.num_sequences + 1);
  return rows * (args.num_heads / args.kv.num_kv_heads) <= 16;
}

}  // namespace

void attention(Context& context, const AttentionArgs& args) {
  CHECK(args.scale > 0.0f && args.kv.dtype == DType::bf16 && args.batch.num_sequences <= kMaxSequences);
  CHECK(is_in_pairs(args.q) && is_in_pairs(args.out) && is_in_pairs(args.unrounded));
  if (args.batch.num_rows == 0) return;
  const ArenaScope scope(*context.arena);
  const size_t bytes =
      attention_scratch_bytes(*context.cuda, args.kv.num_kv_heads, args.kv.head_dim, args.batch.page_table_stride);
  constexpr float kLog2E = 1.4426950408889634f;
  const auto floats = static_cast<int64_t>(bytes / sizeof(float));
  const bool rounds = args.out.dtype == DType::bf16;
  const TensorView& out = rounds ? args.unrounded : args.out;
  const AttentionCall call{.out = out.f32(),
                           .out_stride = out.row_stride,
                           .rounded = rounds ? static_cast<uint16_t*>(args.out.data) : nullptr,
                           .rounded_stride = args.out.row_stride,
                           .q = args.q.f32(),
                           .q_stride = args.q.row_stride,
                           .k = static_cast<const uint16_t*>(args.kv.k),
                           .v = static_cast<const uint16_t*>(args.kv.v),
                           .num_kv_heads = args.kv.num_kv_heads,
                           .heads_per_kv_head = args.num_heads / args.kv.num_kv_heads,
                           .rows_per_tile = 0,
                           .min_team_warps = 0,
                           .batch = args.batch,
                           .causal = args.causal,
                           .window = args.window,
                           .scale_log2 = args.scale * kLog2E,
                           .partials = context.arena->take_f32({floats}).f32(),
                           .partial_floats = floats,
                           .num_blocks = 0,
                           .early = args.early};
  switch (args.kv.head_dim) {
    case 64:
      return are_few(args) ? run<64, true>(context, args, call) : run<64, false>(context, args, call);
    case 128:
      return are_few(args) ? run<128, true>(context, args, call) : run<128, false>(context, args, call);
    case 256:
      return run<256, false>(context, args, call);
    default:
      CHECK(supports_attention(*context.cuda, args.num_heads, args.kv.num_kv_heads, args.kv.head_dim).ok());
  }
}

// Room for some partial results of each multiprocessor, and for those of all groups of one sequence of full length.
size_t attention_scratch_bytes(const CudaDevice& device, int32_t num_kv_heads, int32_t head_dim,
                               int32_t page_table_stride) {
  constexpr int64_t kPartials = 16;  // of a multiprocessor: those of some sequences of 32k positions in one call
  const int64_t queries = head_dim > 128 ? 32 : 64;
  const int64_t groups = int64_t{page_table_stride} * kPageSize / (kChunksPerGroup * kAttentionChunk) + 1;
  const int64_t partials = std::max(kPartials * device.num_multiprocessors(), num_kv_heads * groups);
  return arena_bytes_f32(partials * queries * (head_dim + 2));
}

}  // namespace blockdraft::cu
