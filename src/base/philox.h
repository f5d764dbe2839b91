// Philox4x32-10, the counter-based generator of Salmon, Moraes, Dror and Shaw ("Parallel random numbers: as easy as
// 1, 2, 3", SC 2011): four random words out of a counter and a key, in any order, without any state.
#pragma once

#include <array>
#include <cstdint>

#include "base/host_device.h"

namespace blockdraft {

using PhiloxCounter = std::array<uint32_t, 4>;
using PhiloxKey = std::array<uint32_t, 2>;

BLOCKDRAFT_HOST_DEVICE inline PhiloxCounter philox(PhiloxCounter counter, PhiloxKey key) {
  constexpr int kRounds = 10;
  constexpr uint64_t kMultiplier0 = 0xD2511F53;
  constexpr uint64_t kMultiplier1 = 0xCD9E8D57;
  constexpr uint32_t kKeyStep0 = 0x9E3779B9;  // golden ratio
  constexpr uint32_t kKeyStep1 = 0xBB67AE85;  // square root of 3, less 1
  for (int round = 0; round < kRounds; ++round) {
    const uint64_t product0 = kMultiplier0 * counter[0];
    const uint64_t product1 = kMultiplier1 * counter[2];
    counter = {static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(product1),
               static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(product0)};
    key[0] += kKeyStep0;
    key[1] += kKeyStep1;
  }
  return counter;
}

}  // namespace blockdraft
