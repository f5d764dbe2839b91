// The random numbers of sampling. Each is a pure function of what it is for, so a text does not depend on the order in
// which its numbers are asked for, on who drafts or on who else is in the batch (docs/architecture.md).
#pragma once

#include <cstdint>

#include "base/host_device.h"
#include "base/natural_log.h"
#include "base/philox.h"

namespace blockdraft {

// Numbers for different purposes are independent. Coupled acceptance has one purpose: target and drafter share it.
enum class NoisePurpose : uint32_t { coupled, draft, accept, residual, bonus };

// The numbers of one position of one text.
struct NoiseKey {
  uint64_t seed = 0;
  uint32_t choice = 0;   // which of several texts with the same seed
  int32_t position = 0;  // of the token that is chosen, absolute
  NoisePurpose purpose = NoisePurpose::coupled;
};

BLOCKDRAFT_HOST_DEVICE inline PhiloxCounter noise_words(const NoiseKey& key, uint32_t block) {
  return philox({block, static_cast<uint32_t>(key.position), key.choice, static_cast<uint32_t>(key.purpose)},
                {static_cast<uint32_t>(key.seed), static_cast<uint32_t>(key.seed >> 32)});
}

// In the open interval (0, 1).
BLOCKDRAFT_HOST_DEVICE inline double to_uniform(uint32_t word) { return (static_cast<double>(word) + 0.5) * 0x1p-32; }

BLOCKDRAFT_HOST_DEVICE inline double uniform_noise(const NoiseKey& key) { return to_uniform(noise_words(key, 0)[0]); }

// Standard Gumbel numbers, one an id: argmax(log weight + number) is a draw with probabilities in proportion to the
// weights. Cheapest in ascending order of ids.
class GumbelNoise {
 public:
  static constexpr double kMax = 23.0;  // no number is larger: -log(-log(1 - 2^-33)) = 22.87...

  BLOCKDRAFT_HOST_DEVICE explicit GumbelNoise(const NoiseKey& key) : key_(key), words_(noise_words(key, 0)) {}

  BLOCKDRAFT_HOST_DEVICE double operator()(int32_t id) {
    const uint32_t block = static_cast<uint32_t>(id) / 4;
    if (block != block_) {
      block_ = block;
      words_ = noise_words(key_, block);
    }
    return -natural_log(-natural_log(to_uniform(words_[static_cast<uint32_t>(id) % 4])));
  }

 private:
  NoiseKey key_;
  uint32_t block_ = 0;
  PhiloxCounter words_;
};

}  // namespace blockdraft
