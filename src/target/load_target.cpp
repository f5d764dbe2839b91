#include "base/error.h"
#include "target/qwen3.h"
#include "target/target.h"

namespace blockdraft {

Result<std::unique_ptr<Target>> load_target(const std::filesystem::path& folder, const TargetConfig& config,
                                            const TargetLimits& limits) {
  if (config.architecture == "Qwen3ForCausalLM") return Qwen3Target::load(folder, config, limits);
  return make_error(Code::unsupported, "{}: architecture is '{}', expected Qwen3ForCausalLM",
                    (folder / "config.json").string(), config.architecture);
}

}  // namespace blockdraft
