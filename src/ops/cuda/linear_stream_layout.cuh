// What the warps of the stream kernel share: its parameters, its shared memory, and the order of its work.
//
// A cluster of kRanks blocks works on one tile of 16 weight rows after another; its blocks share the columns, and the
// eight math warps of a block share the block's columns. Everything below is per block unless it says cluster.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ops/cuda/linear_split.h"
#include "ops/cuda/linear_stream.h"

namespace blockdraft::cu {

inline constexpr int kMathWarps = 8;
inline constexpr int kTileRows = 16;   // of the weight
inline constexpr int kGroupTiles = 8;  // whose sums over the sections are kept while x changes
inline constexpr int kMaxSlots = 32;   // of the ring
// Tiles between asking for what an output needs and its sum being there.
inline constexpr int kFetchAhead = 2;
inline constexpr int kFetchSlots = kFetchAhead + 2;
inline constexpr int kScalePitch = 144;  // bytes of NVFP4 group scales of a stage's row: 16 units, and 8 at either end

struct StreamParams {  // what the copy warp needs is together, for the constant cache is cold when a kernel starts
  int32_t first_tile[kMaxStackedWeights + 1];  // of each weight, then their number
  KSplit split;
  uint32_t row_pitch;    // of a stage, bytes; 64 more than a multiple of 128, so that the lanes of a quarter warp read
  uint32_t stage_bytes;  //   from different banks
  int32_t slots;
  StreamCall call;
};

// Of kernels for 16 * kRowTiles rows of x.
template <int kRanksOf, int kRowTilesOf, int kCopyWarpsOf>
struct StreamShape {
  static constexpr int kRanks = kRanksOf;
  static constexpr int kRowTiles = kRowTilesOf;
  static constexpr int kCopyWarps = kCopyWarpsOf;
  static constexpr int kHalves = kHalfSlices / kRanks / kMathWarps;  // half-slices a math warp
  static constexpr int kTokens = 16 * kRowTiles;
  static constexpr int kOwned = kTokens / kRanks;          // tokens whose sums a block finishes
  static constexpr int kBuffers = kRowTiles >= 4 ? 1 : 2;  // of partial sums: the ring needs the memory more
  static constexpr int kFinishWarps = kRowTiles >= 2 ? 2 : 1;
  static constexpr uint32_t kReceivedBytes = kTokens * kTileRows * 4 / kFinishWarps;  // a tile and finishing warp
  // All threads have 168 registers at first. With more than one row tile, x leaves a math warp too few; they move by
  // groups of four warps.
  static constexpr bool kMovesRegisters = kRowTiles > 1;
  static constexpr int kFirstCopyWarp = kMathWarps;
  static constexpr int kFirstFinishWarp = kFirstCopyWarp + kCopyWarps;
  static constexpr int kWarps = kMovesRegisters ? kMathWarps + 4 : kFirstFinishWarp + kFinishWarps;  // some may idle
  static constexpr int kThreads = kWarps * 32;
  static constexpr int kMathRegisters = 208;
  static constexpr int kOtherRegisters = 88;

  // What a finishing warp needs for eight tokens of a tile beside their sums.
  struct Ingredients {
    float scale[kTileRows];
    float bias[kTileRows];
    float before[8][kTileRows];
  };

  struct Shared {
    float partial[kBuffers][kMathWarps][kRowTiles][16 * kTileRows];  // columns as partial_column() says
    float received[2][kRanks][kOwned][kTileRows];
    float section_sum[kGroupTiles][kOwned][kTileRows];
    Ingredients ingredients[kFinishWarps][kFetchSlots];
    uint64_t full[kMaxSlots];
    uint64_t empty[kMaxSlots];
    uint64_t partial_full[kBuffers];
    uint64_t partial_empty[kBuffers];
    uint64_t received_full[2];
  };
};

// Addresses of what is shared. The members of Shared are named for its layout only.
template <class Shape>
struct SharedAddresses {
  using Shared = typename Shape::Shared;
  uint32_t base;

  __device__ __forceinline__ uint32_t full(int slot) const { return base + offsetof(Shared, full) + slot * 8; }
  __device__ __forceinline__ uint32_t empty(int slot) const { return base + offsetof(Shared, empty) + slot * 8; }
  __device__ __forceinline__ uint32_t partial_full(int i) const {
    return base + offsetof(Shared, partial_full) + i * 8;
  }
  __device__ __forceinline__ uint32_t partial_empty(int i) const {
    return base + offsetof(Shared, partial_empty) + i * 8;
  }
  __device__ __forceinline__ uint32_t received_full(int i) const {
    return base + offsetof(Shared, received_full) + i * 8;
  }
  // The partial sums of a math warp and row tile.
  __device__ __forceinline__ uint32_t partial(int buffer, int warp, int row_tile) const {
    return base + offsetof(Shared, partial) +
           ((buffer * kMathWarps + warp) * Shape::kRowTiles + row_tile) * (16 * kTileRows * 4);
  }
  __device__ __forceinline__ uint32_t received(int slot, int rank, int place, int column) const {
    return base + offsetof(Shared, received) +
           (((slot * Shape::kRanks + rank) * Shape::kOwned + place) * kTileRows + column) * 4;
  }
  __device__ __forceinline__ uint32_t section_sum(int tile, int place, int column) const {
    return base + offsetof(Shared, section_sum) + ((tile * Shape::kOwned + place) * kTileRows + column) * 4;
  }
  __device__ __forceinline__ uint32_t ingredients(int finisher, int slot) const {
    return base + offsetof(Shared, ingredients) +
           (finisher * kFetchSlots + slot) * static_cast<int>(sizeof(typename Shape::Ingredients));
  }
  __device__ __forceinline__ uint32_t ring() const { return (base + sizeof(Shared) + 127) / 128 * 128; }
};

// So that neither the stores of the math warps nor the loads of the finishing warp meet in a bank.
__device__ __forceinline__ int partial_column(int token, int column) { return column ^ ((token & 2) != 0 ? 8 : 0); }

// Where the eight weight rows lie that make half a tile: of one weight, from `row` on. There may be fewer than eight.
struct Octet {
  int weight;
  int row;
};
__device__ __forceinline__ Octet octet_of(const StreamParams& p, int tile, int half) {
  if (p.call.output == StreamOutput::silu_mul) return {half, tile * 8};
  int weight = 0;
  while (tile >= p.first_tile[weight + 1]) ++weight;
  return {weight, (tile - p.first_tile[weight]) * kTileRows + half * 8};
}
__device__ __forceinline__ int num_tiles(const StreamParams& p) { return p.first_tile[p.call.num_weights]; }

// The columns of a block in a section, in units.
struct UnitRange {
  int first;  // of the whole row
  int count;
};
template <int kRanks>
__device__ __forceinline__ UnitRange units_of_block(const KSplit& split, int section, int rank) {
  constexpr int kOfBlock = kHalfSlices / kRanks;
  const int units = split.units_of(section);
  const int first = unit_of_half_slice(rank * kOfBlock, units);
  return {split.first_unit(section) + first, unit_of_half_slice((rank + 1) * kOfBlock, units) - first};
}

struct StreamItem {
  int tile;
  int section;
  int place;  // within its group of tiles
};

// Every warp goes through the same items: the tiles of the cluster in groups, the sections in order for each group.
class ItemWalk {
 public:
  __device__ __forceinline__ ItemWalk(const StreamParams& p, int cluster, int clusters)
      : p_(p), clusters_(clusters), group_(cluster), item_{cluster, 0, 0} {}

  __device__ __forceinline__ bool has_item() const { return item_.tile < num_tiles(p_); }
  __device__ __forceinline__ const StreamItem& item() const { return item_; }

  __device__ __forceinline__ void advance() {
    item_.tile += clusters_;
    if (++item_.place < kGroupTiles && has_item()) return;
    item_.place = 0;
    if (++item_.section == p_.split.sections) {
      item_.section = 0;
      group_ += clusters_ * kGroupTiles;
    }
    item_.tile = group_;
  }

 private:
  const StreamParams& p_;
  const int clusters_;
  int group_;  // its first tile
  StreamItem item_;
};

// A place in a ring of barriers with phases.
struct RingPosition {
  int slot = 0;
  uint32_t parity = 0;

  __device__ __forceinline__ void advance(int slots) {
    if (++slot == slots) {
      slot = 0;
      parity ^= 1;
    }
  }
};

}  // namespace blockdraft::cu
