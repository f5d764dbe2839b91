// Where an engine computes.
#pragma once

#include <cstdint>

namespace blockdraft {

struct Device {
  enum class Kind { cpu, cuda };
  Kind kind = Kind::cpu;
  int32_t index = 0;  // of cards, from 0 on

  static constexpr Device cpu() { return {}; }
  static constexpr Device cuda(int32_t number) { return {Kind::cuda, number}; }
  friend constexpr bool operator==(const Device&, const Device&) = default;
};

}  // namespace blockdraft
