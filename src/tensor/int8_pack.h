// How an int8 weight lies in memory: the order in which its products read it.
//
// 16 output features make a pack, packs follow one another. A pack holds first its codes, as code + 128 in a byte: 64
// bytes for four columns, in which each feature has its four side by side; then its scales, F16, 16 for each group of
// 32 columns. So one vector of 64 bytes is four columns of 16 features, and a pack is read from front to back. Features
// of the last pack that the weight does not have are zero.
#pragma once

#include <cstddef>
#include <cstdint>

namespace blockdraft {

inline constexpr int64_t kInt8Group = 32;  // columns that share a scale; in_features is a multiple of it
inline constexpr int64_t kPackFeatures = 16;
inline constexpr int kInt8Offset = 128;  // what is added to a code, so that bytes are unsigned

inline constexpr int64_t kPackGroupCodes = kInt8Group * kPackFeatures;                  // bytes
inline constexpr int64_t kPackGroupScales = kPackFeatures * int64_t{sizeof(uint16_t)};  // bytes

constexpr int64_t num_packs(int64_t out_features) { return (out_features + kPackFeatures - 1) / kPackFeatures; }

// A multiple of 64, so that no vector of codes crosses a cache line where the first one does not.
constexpr int64_t int8_pack_bytes(int64_t in_features) {
  const int64_t bytes = in_features / kInt8Group * (kPackGroupCodes + kPackGroupScales);
  return (bytes + 63) / 64 * 64;
}

// Of a whole weight.
constexpr int64_t int8_bytes(int64_t out_features, int64_t in_features) {
  return num_packs(out_features) * int8_pack_bytes(in_features);
}

// Where the byte of element (feature, k) lies, and the scale of its group, from the first byte of the weight on.
constexpr int64_t int8_code_offset(int64_t in_features, int64_t feature, int64_t k) {
  return feature / kPackFeatures * int8_pack_bytes(in_features) + k / 4 * 64 + feature % kPackFeatures * 4 + k % 4;
}
constexpr int64_t int8_scale_offset(int64_t in_features, int64_t feature, int64_t group) {
  return feature / kPackFeatures * int8_pack_bytes(in_features) + in_features * kPackFeatures +
         group * kPackGroupScales + feature % kPackFeatures * int64_t{sizeof(uint16_t)};
}

}  // namespace blockdraft
