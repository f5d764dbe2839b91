// Where an engine computes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "blockdraft/result.h"

namespace blockdraft {

struct Device {
  enum class Kind { cpu, cuda };
  Kind kind = Kind::cpu;
  int32_t index = 0;  // of cards, from 0 on

  static constexpr Device cpu() { return {}; }
  static constexpr Device cuda(int32_t number) { return {Kind::cuda, number}; }
  friend constexpr bool operator==(const Device&, const Device&) = default;
};

std::string name_of(Device device);  // "cpu", "cuda:0"
// "cpu", "cuda" (card 0) or "cuda:N"; nothing for another text. Whether there is such a card is not looked at.
std::optional<Device> device_from_name(std::string_view name);

struct ReadBandwidth {
  double bytes_per_s = 0;
  int64_t buffer_bytes = 0;  // read again and again
};
// How fast this card reads its memory, measured now: the best pass of 0.3 s over 2 GiB, or over half of what is free
// where that is less. The card should have nothing else to do. May be called on any thread.  Errors: invalid_argument
// for the CPU, whose bandwidth is a matter of threads; unsupported where the card cannot be opened; out_of_memory where
// half of the free memory is not clearly more than the card's caches.
Result<ReadBandwidth> measure_read_bandwidth(Device device);

}  // namespace blockdraft
