// A target's logits and taps for a text that is given.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "blockdraft/result.h"
#include "support/device_context.h"
#include "target/target.h"

namespace blockdraft::golden {

struct Outputs {
  std::vector<float> logits;  // [positions, vocabulary]
  std::vector<float> taps;    // [positions, ids * hidden]
};

// Feeds the ids to slot 0, from its beginning, in passes of `piece` rows. The target was loaded for the device.
Result<Outputs> teacher_force(test::DeviceContext& device, Target& target, const std::vector<int32_t>& ids,
                              const std::vector<int32_t>& tap_layer_ids, size_t piece);

}  // namespace blockdraft::golden
