// How the warps of a block copy keys and values to shared memory ahead of their use.
#pragma once

#include <cstdint>

#include "ops/cuda/attention_plan.cuh"
#include "ops/cuda/mma.cuh"

namespace blockdraft::cu {

inline constexpr int kPagesPerChunk = kAttentionChunk / kPageSize;

template <int kHeadDim>
struct Tiling {
  static constexpr int kSlices = kHeadDim > 128 ? 2 : 1;
  static constexpr int kValues = kHeadDim / kSlices;  // of a warp
  static constexpr int kSteps = kHeadDim / 16;        // of a product with a key
  static constexpr int kRowBytes = kHeadDim * 2;
  static constexpr int kPageBytes = kPageSize * kRowBytes;
};

// Pieces of 16 bytes of a page lie in its rows in another order, so that neighbours in a column lie in different banks:
// piece p of row r at p ^ (r % 8). Addresses of a lane differ in p alone: by an exclusive or.
template <int kHeadDim>
__device__ uint32_t offset_in_page(int row, int piece) {
  return static_cast<uint32_t>(row * Tiling<kHeadDim>::kRowBytes + ((piece ^ (row & 7)) << 4));
}

struct Unit {
  int index;
  SequenceRange range;
  const int32_t* page_table;
  int kv_head;
  int first_row;  // of the tile
  int rows;
  int first_chunk;
  int end_chunk;
  bool is_whole;  // no other unit has chunks of these rows
};

template <int kHeadDim>
__device__ Unit unit_of(const AttentionCall& call, const AttentionPlan& plan, const int* units_before, int index) {
  Unit unit{};
  unit.index = index;
  const int sequence = sequence_of_unit(units_before, call.batch.num_sequences, index);
  unit.range = range_of(call.batch, sequence);
  unit.page_table = call.batch.page_tables + static_cast<int64_t>(sequence) * call.batch.page_table_stride;
  const int units = units_of(call, unit.range, plan.chunks_per_unit);
  const int local = index - units_before_sequence(units_before, sequence);
  unit.kv_head = local / units % call.num_kv_heads;
  unit.first_row = local / units / call.num_kv_heads * call.rows_per_tile;
  unit.rows = min(call.rows_per_tile, unit.range.rows - unit.first_row);
  unit.is_whole = units == 1;

  // Chunks that some row of the tile sees, those of the unit.
  const int first_position = unit.range.first_position + unit.first_row;
  const int end = call.causal ? first_position + unit.rows : unit.range.end;
  const int first_key = call.window > 0 ? max(0, first_position - call.window + 1) : 0;
  unit.first_chunk = first_key / kAttentionChunk;
  unit.end_chunk = (end + kAttentionChunk - 1) / kAttentionChunk;
  if (plan.chunks_per_unit != kWholeSequence) {
    const int first = unit.range.first_chunk(call.window) / plan.chunks_per_unit + local % units;
    unit.first_chunk = max(unit.first_chunk, first * plan.chunks_per_unit);
    unit.end_chunk = min(unit.end_chunk, (first + 1) * plan.chunks_per_unit);
  }
  return unit;
}

// Copies the pages of a unit to the ring of a team, slot after slot: of each chunk the keys, then the values. Each warp
// copies some rows of each slot.
template <int kHeadDim, int kTeam, int kSlotPages>
struct Loader {
  using Shape = Tiling<kHeadDim>;
  static constexpr int kSlotBytes = kSlotPages * Shape::kPageBytes;
  static constexpr int kPieces = kHeadDim / 8;                         // of a row
  static constexpr int kRowsAtOnce = kPieces < 32 ? 32 / kPieces : 1;  // that a warp copies with one instruction
  static constexpr int kRowsOfWarp = kSlotPages * kPageSize / kTeam;   // of a slot
  static constexpr int kPagesOfWarp = (kRowsOfWarp + kPageSize - 1) / kPageSize;
  static constexpr int kRowsOfPage = kRowsOfWarp / kPagesOfWarp;  // that the warp copies
  static constexpr int kPagesAtOnce = 32;                         // whose numbers the lanes hold

  const int32_t* page_table;
  int32_t end_position;
  int32_t end_page;    // of the unit
  int32_t page;        // the warp's first one of the next slot
  int32_t first_page;  // of those whose numbers the lanes hold
  bool is_values = false;
  int slot = 0;
  int slots;  // of the ring
  int32_t numbers;
  int32_t next_numbers;
  int lane_row;           // in the page
  const std::byte* keys;  // of the lane's piece in page 0
  int64_t values_from_keys;
  int64_t page_stride;
  uint32_t to;  // of the lane's first piece of slot 0

  __device__ Loader(const AttentionCall& call, const Unit& unit, int warp, uint32_t ring, int slots_of_ring)
      : page_table(unit.page_table),
        end_position(unit.range.end),
        end_page(unit.end_chunk * kPagesPerChunk),
        first_page(unit.first_chunk * kPagesPerChunk),
        slots(slots_of_ring) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int first_row = warp * kRowsOfWarp;  // in the slot
    page = first_page + first_row / kPageSize;
    lane_row = first_row % kPageSize + lane / kPieces;
    const int64_t head_bytes = int64_t{kPageSize} * Shape::kRowBytes;
    page_stride = call.num_kv_heads * head_bytes;
    keys = reinterpret_cast<const std::byte*>(call.k) + unit.kv_head * head_bytes + lane_row * Shape::kRowBytes +
           lane % kPieces * 16;
    values_from_keys = reinterpret_cast<const std::byte*>(call.v) - reinterpret_cast<const std::byte*>(call.k);
    to = ring + static_cast<uint32_t>(first_row / kPageSize * Shape::kPageBytes) +
         offset_in_page<kHeadDim>(lane_row, lane % kPieces);
    numbers = number_of_lane(first_page);
    next_numbers = number_of_lane(first_page + kPagesAtOnce);
  }

  __device__ int32_t number_of_lane(int first) const {
    const int at = first + static_cast<int>(threadIdx.x) % 32;
    return at < end_page && at * kPageSize < end_position ? page_table[at] : -1;
  }

  // What lies behind the end, or in a page that is not there, is zeros.
  __device__ void copy_rows_of_page(int32_t number, int32_t first_position, uint32_t address) {
    const int32_t rows = number < 0 ? 0 : end_position - first_position - lane_row;
    const std::byte* from = keys + (is_values ? values_from_keys : 0) + max(number, 0) * page_stride;
#pragma unroll
    for (int row = 0; row < kRowsOfPage; row += kRowsAtOnce) {
      copy_async_16((address ^ static_cast<uint32_t>((row & 7) << 4)) + row * Shape::kRowBytes,
                    from + row * Shape::kRowBytes, row < rows);
    }
  }

  // The next slot; nothing after the last.
  __device__ void load() {
    if (page < end_page) {
      if (page - first_page >= kPagesAtOnce) {
        first_page += kPagesAtOnce;
        numbers = next_numbers;
        next_numbers = number_of_lane(first_page + kPagesAtOnce);
      }
#pragma unroll
      for (int i = 0; i < kPagesOfWarp; ++i) {
        copy_rows_of_page(__shfl_sync(~0u, numbers, page + i - first_page), (page + i) * kPageSize,
                          to + static_cast<uint32_t>(slot * kSlotBytes + i * Shape::kPageBytes));
      }
      page += kSlotPages;
      if (page % kPagesPerChunk < kSlotPages) {  // the chunk's last slot was this one
        if (!is_values) page -= kPagesPerChunk;
        is_values = !is_values;
      }
      slot = slot + 1 == slots ? 0 : slot + 1;
    }
    end_copy_group();
  }
};

}  // namespace blockdraft::cu
