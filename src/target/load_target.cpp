#include "base/error.h"
#include "target/dense_target.h"
#include "target/target.h"

namespace blockdraft {

Result<std::unique_ptr<Target>> load_target(const std::filesystem::path& folder, const TargetConfig& config,
                                            const TargetLimits& limits) {
  if (config.architecture == "Qwen3ForCausalLM" || config.architecture == "LlamaForCausalLM") {
    return DenseTarget::load(folder, config, limits);
  }
  return make_error(Code::unsupported, "{}: architecture is '{}', expected Qwen3ForCausalLM or LlamaForCausalLM",
                    (folder / "config.json").string(), config.architecture);
}

}  // namespace blockdraft
