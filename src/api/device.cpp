#include "blockdraft/device.h"

#include <charconv>
#include <system_error>

namespace blockdraft {

std::string name_of(Device device) {
  return device.kind == Device::Kind::cpu ? "cpu" : "cuda:" + std::to_string(device.index);
}

std::optional<Device> device_from_name(std::string_view name) {
  constexpr std::string_view kNumbered = "cuda:";
  if (name == "cpu") return Device::cpu();
  if (name == "cuda") return Device::cuda(0);
  if (!name.starts_with(kNumbered)) return std::nullopt;
  const std::string_view digits = name.substr(kNumbered.size());
  int32_t index = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
  if (error != std::errc() || end != digits.data() + digits.size() || index < 0) return std::nullopt;
  return Device::cuda(index);
}

}  // namespace blockdraft
