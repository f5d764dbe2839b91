// How the stream kernel splits a sum over k: by in_features alone.
//
// k is cut into units of 128 columns. At most 32 units are a section; a section is dealt out to 32 half-slices in
// order, each of one unit or none. The sum of a unit is a chain of matrix instructions; then, h being those sums,
//   pair[i] = h[2i] + h[2i + 1],   quarter[j] = ((pair[4j] + pair[4j+1]) + pair[4j+2]) + pair[4j+3],
//   section = (quarter[0] + quarter[1]) + (quarter[2] + quarter[3]),
// and sections are added in order. Any kernel that follows this gives the same bits.
#pragma once

#include <cstdint>

#include "base/host_device.h"

namespace blockdraft::cu {

inline constexpr int kUnit = 128;
inline constexpr int kHalfSlices = 32;

struct KSplit {
  int32_t units;
  int32_t sections;

  BLOCKDRAFT_HOST_DEVICE int first_unit(int section) const { return section * units / sections; }
  BLOCKDRAFT_HOST_DEVICE int units_of(int section) const { return first_unit(section + 1) - first_unit(section); }
};

inline KSplit split_of(int64_t in_features) {
  const auto units = static_cast<int32_t>(in_features / kUnit);
  return {units, (units + kHalfSlices - 1) / kHalfSlices};
}

// The first unit, within its section of so many units, of a half-slice. That of the next half-slice is its end.
BLOCKDRAFT_HOST_DEVICE inline int unit_of_half_slice(int half_slice, int section_units) {
  return half_slice * section_units / kHalfSlices;
}

}  // namespace blockdraft::cu
