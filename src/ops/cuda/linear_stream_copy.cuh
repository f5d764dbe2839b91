// The copy warps of the stream kernel: weight rows into the ring, as far ahead as there is room. Each copies its share
// of the rows of every stage.
#pragma once

#include "ops/cuda/linear_stream_layout.cuh"
#include "ops/cuda/ptx.cuh"

namespace blockdraft::cu {

// NVFP4 group scales: 8 bytes a unit. What is copied begins and ends at multiples of 16 bytes.
__device__ __forceinline__ uint32_t bytes_of_scales(int64_t first_unit, int count) {
  return count == 0 ? 0 : static_cast<uint32_t>((first_unit + count + 1) / 2 - first_unit / 2) * 16;
}

template <class Format, class Shape>
class CopyWarp {
  static constexpr int kRows = Format::kStageRows / Shape::kCopyWarps;  // of a stage
  static constexpr bool kHasGroupScales = Format::kUnitBytes == 64;

 public:
  __device__ __forceinline__ CopyWarp(const StreamParams& p, const SharedAddresses<Shape>& shared, int rank, int copier)
      : p_(p),
        shared_(shared),
        rank_(rank),
        lane_(static_cast<int>(threadIdx.x) % 32),
        row_in_stage_(copier * kRows + lane_ % kRows) {}

  __device__ __forceinline__ void run(int cluster, int clusters) {
    for (ItemWalk walk(p_, cluster, clusters); walk.has_item(); walk.advance()) {
      const UnitRange units = units_of_block<Shape::kRanks>(p_.split, walk.item().section, rank_);
#pragma unroll
      for (int row = 0; row < kTileRows; row += Format::kStageRows) copy_stage(walk.item().tile, row, units);
    }
  }

 private:
  // Rows that the weight does not have stay what they were: their sums go nowhere.
  __device__ __forceinline__ void copy_stage(int tile, int first_row, UnitRange units) {
    const int row_in_tile = first_row + row_in_stage_;
    const Octet octet = octet_of(p_, tile, row_in_tile / 8);
    const WeightView& weight = p_.call.weights[octet.weight];
    const int row = octet.row + row_in_tile % 8;
    const bool copies = lane_ < kRows && row < weight.out_features && units.count > 0;
    const uint32_t lanes = __ballot_sync(~0u, copies);
    const int64_t first_unit = static_cast<int64_t>(row) * p_.split.units + units.first;
    const uint32_t bytes = units.count * Format::kUnitBytes;
    const uint32_t even_scales = bytes_of_scales(units.first, units.count);
    const uint32_t odd_scales = bytes_of_scales(p_.split.units + units.first, units.count);

    barrier_wait(shared_.empty(at_.slot), at_.parity);
    const uint32_t full = shared_.full(at_.slot);
    if (lane_ == 0) {
      // Even lanes have even rows.
      const uint32_t scale_bytes = __popc(lanes & 0x55555555u) * even_scales + __popc(lanes & 0xaaaaaaaau) * odd_scales;
      barrier_arrive_expecting(full, __popc(lanes) * bytes + (kHasGroupScales ? scale_bytes : 0));
    }
    __syncwarp();
    if (copies) {
      const uint32_t stage = shared_.ring() + at_.slot * p_.stage_bytes;
      bulk_copy(stage + row_in_stage_ * p_.row_pitch, weight.data + first_unit * Format::kUnitBytes, bytes, full);
      if (kHasGroupScales) {
        bulk_copy(stage + Format::kStageRows * p_.row_pitch + row_in_stage_ * kScalePitch,
                  weight.group_scales + first_unit / 2 * 16, row % 2 == 0 ? even_scales : odd_scales, full);
      }
    }
    at_.advance(p_.slots);
  }

  const StreamParams& p_;
  const SharedAddresses<Shape> shared_;
  const int rank_;
  const int lane_;
  const int row_in_stage_;
  RingPosition at_{0, 1};  // the first round through the ring waits for nothing
};

}  // namespace blockdraft::cu
