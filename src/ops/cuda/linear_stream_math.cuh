// The math warps of the stream kernel: each keeps its columns of x in registers and multiplies them with its columns of
// the weight rows that come through the ring.
#pragma once

#include "ops/cuda/linear_formats.cuh"
#include "ops/cuda/linear_stream_layout.cuh"
#include "ops/cuda/ptx.cuh"

namespace blockdraft::cu {

// How x lies in memory. A warp asks once: a branch at every load would have each of them wait for the one before.
enum class XSource { bf16, f32, f32_unaligned };

__device__ __forceinline__ bool is_x_aligned(const StreamCall& call) {
  return reinterpret_cast<uintptr_t>(call.x) % 16 == 0 && call.x_stride % 4 == 0;
}

template <float kScale>
__device__ __forceinline__ uint4 scaled_bf16x8(uint4 v) {
  const uint32_t scale = pack_bf16(kScale, kScale);
  return make_uint4(multiply_bf16x2(v.x, scale), multiply_bf16x2(v.y, scale), multiply_bf16x2(v.z, scale),
                    multiply_bf16x2(v.w, scale));
}

// Eight columns of a row of x in BF16, times kScale; zeros behind the last row.
template <XSource kSource, float kScale>
__device__ __forceinline__ uint4 load_x(const StreamCall& call, int row, int column) {
  const bool exists = row < call.rows;
  const int64_t element = row * call.x_stride + column;
  if constexpr (kSource == XSource::bf16) {
    const auto* from = reinterpret_cast<const uint4*>(static_cast<const uint16_t*>(call.x) + element);
    const uint4 v = exists ? *from : make_uint4(0, 0, 0, 0);
    return kScale == 1.0f ? v : scaled_bf16x8<kScale>(v);
  }
  const float* from = static_cast<const float*>(call.x) + element;
  float4 a = make_float4(0, 0, 0, 0);
  float4 b = a;
  if (kSource == XSource::f32 && exists) {
    a = reinterpret_cast<const float4*>(from)[0];
    b = reinterpret_cast<const float4*>(from)[1];
  } else if (exists) {
    a = make_float4(from[0], from[1], from[2], from[3]);
    b = make_float4(from[4], from[5], from[6], from[7]);
  }
  return make_uint4(pack_bf16(a.x * kScale, a.y * kScale), pack_bf16(a.z * kScale, a.w * kScale),
                    pack_bf16(b.x * kScale, b.y * kScale), pack_bf16(b.z * kScale, b.w * kScale));
}

// The units of a math warp in a section: the first `count` of units[]; those of a block that has none count nothing.
template <int kHalves>
struct WarpUnits {
  int units[kHalves];  // within the block's
  int count = 0;
};
template <int kRanks, int kHalves>
__device__ __forceinline__ WarpUnits<kHalves> units_of_warp(const KSplit& split, int section, int rank, int warp) {
  WarpUnits<kHalves> mine{};
  const int units = split.units_of(section);
  const int block_first = unit_of_half_slice(rank * (kHalfSlices / kRanks), units);
  const int half_slice = (rank * kMathWarps + warp) * kHalves;
#pragma unroll
  for (int h = 0; h < kHalves; ++h) {
    const int first = unit_of_half_slice(half_slice + h, units);
    if (unit_of_half_slice(half_slice + h + 1, units) == first) continue;
    // Where only the second half-slice has a unit it takes the first one's place: the sum of the pair is the same.
    if (mine.count == 0) {
      mine.units[0] = first - block_first;
    } else {
      mine.units[kHalves - 1] = first - block_first;
    }
    ++mine.count;
  }
  return mine;
}

template <class Format, XSource kSource, int kRowTiles>
__device__ __forceinline__ void load_x_unit(XUnit (&x)[kRowTiles], const StreamCall& call, int unit) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int r = 0; r < kRowTiles; ++r) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int column = unit * kUnit + Format::column(i, lane % 4);
      const int row = r * 16 + lane / 4;
      Format::place(x[r], i, load_x<kSource, Format::kXScale>(call, row, column),
                    load_x<kSource, Format::kXScale>(call, row + 8, column));
    }
  }
}

// c[octet][h] += the products of the units h with the weight rows of a stage, of which a lane has read `codes`: the
// steps from kStep on of one load. Sums take turns, since each instruction waits long for the one before it.
template <class Format, int kStep, int kCount, int kOctets, int kHalves, int kRowTiles>
__device__ __forceinline__ void add_steps(float (&c)[kOctets][kHalves][kRowTiles][4],
                                          const XUnit (&x)[kHalves][kRowTiles], const uint4 (&codes)[kOctets][kCount],
                                          const typename Format::Scales (&scales)[kOctets][kCount], int load) {
  constexpr int kSteps = 8 / Format::kLoads;
  if constexpr (kStep < kSteps) {
#pragma unroll
    for (int o = 0; o < kOctets; ++o) {
#pragma unroll
      for (int h = 0; h < kCount; ++h) {
        const Fragment b = Format::template fragment<kStep>(codes[o][h], scales[o][h]);
#pragma unroll
        for (int r = 0; r < kRowTiles; ++r) mma_bf16(c[o][h][r], x[h][r][load * kSteps + kStep], b.first, b.second);
      }
    }
    add_steps<Format, kStep + 1>(c, x, codes, scales, load);
  }
}

// FP8 block scales of the octets of a tile, for each unit of the warp. They are asked for a tile ahead.
template <int kHalves>
struct BlockScales {
  float scales[2][kHalves];
};
template <int kHalves>
__device__ __forceinline__ void load_block_scales(BlockScales<kHalves>& into, const StreamParams& p, int tile,
                                                  int first_unit, const WarpUnits<kHalves>& mine) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    if (half == 1 && p.call.output != StreamOutput::silu_mul) {  // one block
#pragma unroll
      for (int h = 0; h < kHalves; ++h) into.scales[1][h] = into.scales[0][h];
      break;
    }
    const Octet octet = octet_of(p, tile, half);
    const float* scales =
        p.call.weights[octet.weight].block_scales + octet.row / static_cast<int>(kScaleBlock) * p.split.units;
#pragma unroll
    for (int h = 0; h < kHalves; ++h) {
      into.scales[half][h] = h < mine.count ? __ldg(scales + first_unit + mine.units[h]) : 0.0f;
    }
  }
}

template <class Format, class Shape, bool kXIsBf16>
class MathWarp {
  static constexpr int kRanks = Shape::kRanks;
  static constexpr int kRowTiles = Shape::kRowTiles;
  static constexpr int kHalves = Shape::kHalves;
  static constexpr int kStageOctets = Format::kStageRows / 8;
  static constexpr int kOctets = kRowTiles == 1 ? kStageOctets : 1;  // at once
  static constexpr bool kHasGroupScales = Format::kUnitBytes == 64;

 public:
  __device__ __forceinline__ MathWarp(const StreamParams& p, const SharedAddresses<Shape>& shared, int rank)
      : p_(p), shared_(shared), rank_(rank) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int warp = static_cast<int>(threadIdx.x) / 32;
    ring_ = shared.ring() + lane / 4 * p.row_pitch + lane % 4 * 16;
    partial_ = shared.partial(0, warp, 0) + (lane / 4 * kTileRows + partial_column(lane / 4, lane % 4 * 2)) * 4;
  }

  // x of the first item: all that can be done before the other blocks of the cluster are there.
  __device__ __forceinline__ void begin(int cluster) { load_section(0, cluster); }

  // In the order of ItemWalk.
  __device__ __forceinline__ void run(int cluster, int clusters) {
    const int group_tiles = p_.split.sections == 1 ? num_tiles(p_) : clusters * kGroupTiles;
    for (int group = cluster; group < num_tiles(p_); group += group_tiles) {
      for (int section = 0; section < p_.split.sections; ++section) {
        if (group != cluster || section != 0) load_section(section, group);
        multiply_tiles(group, clusters, min(num_tiles(p_), group + group_tiles));
      }
    }
  }

 private:
  __device__ __forceinline__ void load_section(int section, int tile) {
    const int warp = static_cast<int>(threadIdx.x) / 32;
    mine_ = units_of_warp<kRanks, kHalves>(p_.split, section, rank_, warp);
    block_first_ = units_of_block<kRanks>(p_.split, section, rank_).first;
    if constexpr (kXIsBf16) {
      load_units<XSource::bf16>();
    } else if (is_x_aligned(p_.call)) {
      load_units<XSource::f32>();
    } else {
      load_units<XSource::f32_unaligned>();
    }
    if (Format::kHasBlockScales) load_block_scales(next_scales_, p_, tile, block_first_, mine_);
  }

  template <XSource kSource>
  __device__ __forceinline__ void load_units() {
    if (mine_.count == kHalves) {
#pragma unroll
      for (int h = 0; h < kHalves; ++h) {
        load_x_unit<Format, kSource>(x_[h], p_.call, block_first_ + mine_.units[h]);
      }
    } else if (mine_.count > 0) {
      load_x_unit<Format, kSource>(x_[0], p_.call, block_first_ + mine_.units[0]);
    }
  }

  __device__ __forceinline__ void multiply_tiles(int first, int clusters, int end) {
    if (mine_.count == kHalves) {
      multiply_tiles<kHalves>(first, clusters, end);
    } else if (mine_.count == 0) {
      multiply_tiles<0>(first, clusters, end);
    } else {
      multiply_tiles<1>(first, clusters, end);
    }
  }

  // Of a section of which this warp has kCount units.
  template <int kCount>
  __device__ __forceinline__ void multiply_tiles(int first, int clusters, int end) {
#pragma unroll 1
    for (int tile = first; tile < end; tile += clusters) {
      BlockScales<kHalves> scales{};
      if (Format::kHasBlockScales) {
        scales = next_scales_;
        load_block_scales(next_scales_, p_, min(tile + clusters, num_tiles(p_) - 1), block_first_, mine_);
      }
      multiply_tile<kCount>(scales);
    }
  }

  template <int kCount>
  __device__ __forceinline__ void multiply_tile(const BlockScales<kHalves>& scales) {
#pragma unroll
    for (int first = 0; first < 2; first += kOctets) {
      const int in_stage = first % kStageOctets;
      if (in_stage == 0) barrier_wait(shared_.full(in_.slot), in_.parity);
      float c[kOctets][kHalves][kRowTiles][4] = {};
      if constexpr (kCount > 0) multiply_octets<kCount>(c, in_stage);
      if (in_stage + kOctets == kStageOctets) release_slot();
      if (first == 0) barrier_wait(shared_.partial_empty(out_.slot), out_.parity);
#pragma unroll
      for (int o = 0; o < kOctets; ++o) {
        add_halves(c[o], scales.scales[first + o]);
        put_partial(c[o][0], first + o);
      }
    }
    __syncwarp();
    if (threadIdx.x % 32 == 0) barrier_arrive(shared_.partial_full(out_.slot));
    out_.advance(Shape::kBuffers);
  }

  __device__ __forceinline__ void put_partial(const float (&c)[kRowTiles][4], int half) const {
    constexpr int kRow = kTileRows * 4;
    const uint32_t buffer = shared_.partial(out_.slot, 0, 0) - shared_.partial(0, 0, 0);
    const uint32_t first = (partial_ ^ (half * 32)) + buffer;  // columns of the other half differ in bit 3
#pragma unroll
    for (int r = 0; r < kRowTiles; ++r) {
      store_shared_f32x2(first + r * 16 * kRow, c[r][0], c[r][1]);
      store_shared_f32x2(first + (r * 16 + 8) * kRow, c[r][2], c[r][3]);
    }
  }

  template <int kCount>
  __device__ __forceinline__ void multiply_octets(float (&c)[kOctets][kHalves][kRowTiles][4], int first_octet) {
    // Codes are asked for this many loads ahead: as many as there are registers for.
    constexpr int kAhead = kRowTiles == 1 ? Format::kLoads : 1;
    typename Format::Scales scales[kOctets][kCount];
    uint4 codes[Format::kLoads][kOctets][kCount];
    if constexpr (kHasGroupScales) load_scales(scales, first_octet);
#pragma unroll
    for (int i = 0; i < kAhead; ++i) load_codes(codes[i], first_octet, i);
#pragma unroll
    for (int i = 0; i < Format::kLoads; ++i) {
      if (i + kAhead < Format::kLoads) load_codes(codes[i + kAhead], first_octet, i + kAhead);
      add_steps<Format, 0>(c, x_, codes[i], scales, i);
    }
  }

  template <int kCount>
  __device__ __forceinline__ void load_codes(uint4 (&codes)[kOctets][kCount], int first_octet, int load) const {
    const uint32_t stage = ring_ + in_.slot * p_.stage_bytes + first_octet * 8 * p_.row_pitch;
#pragma unroll
    for (int h = 0; h < kCount; ++h) {
#pragma unroll
      for (int o = 0; o < kOctets; ++o) {
        codes[o][h] = load_shared_16(stage + mine_.units[h] * Format::kUnitBytes + o * 8 * p_.row_pitch + load * 64);
      }
    }
  }

  // Group scales lie behind the codes. Copies of them begin at multiples of 16 bytes, two units.
  template <int kCount>
  __device__ __forceinline__ void load_scales(typename Format::Scales (&scales)[kOctets][kCount],
                                              int first_octet) const {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int row = first_octet * 8 + lane / 4;
    const int shift = ((row & p_.split.units) + block_first_) % 2 * 8;
    const uint32_t first = shared_.ring() + in_.slot * p_.stage_bytes + Format::kStageRows * p_.row_pitch +
                           row * kScalePitch + shift + lane % 4 * 2;
#pragma unroll
    for (int h = 0; h < kCount; ++h) {
#pragma unroll
      for (int o = 0; o < kOctets; ++o) {
        scales[o][h].set(load_shared_2(first + o * 8 * kScalePitch + mine_.units[h] * 8));
      }
    }
  }

  // The copy engine writes this slot next. The fence is needed: the arrival alone does not wait for this warp's last
  // loads from the slot.
  __device__ __forceinline__ void release_slot() {
    fence_copy_engine();
    __syncwarp();
    if (threadIdx.x % 32 == 0) barrier_arrive(shared_.empty(in_.slot));
    in_.advance(p_.slots);
  }

  // c[0] = the sum of the pair of half-slices, where one warp has both.
  __device__ __forceinline__ void add_halves(float (&c)[kHalves][kRowTiles][4], const float (&scales)[kHalves]) {
#pragma unroll
    for (int r = 0; r < kRowTiles; ++r) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        if (Format::kHasBlockScales) {
#pragma unroll
          for (int h = 0; h < kHalves; ++h) c[h][r][i] *= scales[h];
        }
        if (kHalves == 2) c[0][r][i] += c[kHalves - 1][r][i];
      }
    }
  }

  const StreamParams& p_;
  const SharedAddresses<Shape> shared_;
  const int rank_;
  uint32_t ring_;     // this lane's first row and column of its first stage
  uint32_t partial_;  // this lane's first partial sum
  XUnit x_[kHalves][kRowTiles];
  WarpUnits<kHalves> mine_{};
  int block_first_ = 0;
  BlockScales<kHalves> next_scales_{};
  RingPosition in_;
  RingPosition out_{0, 1};
};

}  // namespace blockdraft::cu
