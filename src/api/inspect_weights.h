// The weights of a folder: checked against its config by their headers, and summed up.
#pragma once

#include <filesystem>

#include "blockdraft/inspect.h"
#include "blockdraft/result.h"
#include "draft/drafter_config.h"
#include "draft/drafter_weights.h"
#include "target/target_config.h"

namespace blockdraft {

// Fill groups, parameters, weight_bytes, has_tensor_data and data_bytes of the report, and add lines to it. Errors: as
// loading, but for values. The result has shapes and no data.
Status inspect_target_weights(const std::filesystem::path& folder, const TargetConfig& config, FolderReport& report);
Result<DrafterWeights> inspect_drafter_weights(const std::filesystem::path& folder, const DrafterConfig& config,
                                               FolderReport& report);

}  // namespace blockdraft
