#include "target/dense_target.h"
#include "target/target.h"

namespace blockdraft {

Result<std::unique_ptr<Target>> load_target(const std::filesystem::path& folder, const TargetConfig& config,
                                            const TargetLimits& limits) {
  // Every architecture that read_target_config accepts is one of these so far.
  return DenseTarget::load(folder, config, limits);
}

}  // namespace blockdraft
