#include "base/error.h"
#include "target/dense_target.h"
#include "target/target.h"

namespace blockdraft {

Result<std::unique_ptr<Target>> load_target(const WeightSource& source, const TargetConfig& config,
                                            const TargetLimits& limits, const WeightLoading& loading) {
  if (config.architecture == "Qwen3ForCausalLM" || config.architecture == "LlamaForCausalLM") {
    return DenseTarget::load(source, config, limits, loading);
  }
  return make_error(Code::unsupported, "{}: architecture is '{}', expected Qwen3ForCausalLM or LlamaForCausalLM",
                    (source.folder / "config.json").string(), config.architecture);
}

// read_target_config gives configs of dense targets alone.
TargetMemory target_memory(const TargetConfig& config, const TargetLimits& limits, int32_t num_threads) {
  return DenseTarget::memory(config, limits, num_threads);
}

Status check_target_tensors(WeightStore& store, const TargetConfig& config) {
  BLOCKDRAFT_TRY(load_dense_weights(store, config));
  return {};
}

}  // namespace blockdraft
