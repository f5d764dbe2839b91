// config.json of a target.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "blockdraft/result.h"
#include "nn/transformer_config.h"

namespace blockdraft {

struct TargetConfig {
  std::string architecture;  // the first of `architectures`
  TransformerConfig transformer;
  bool tie_word_embeddings = false;
  std::vector<int32_t> eos_token_ids;  // of config.json and generation_config.json together; one id, a list, or none
};

// Reads config.json, and generation_config.json where there is one. Refused by name: architectures other than
// Qwen3ForCausalLM and LlamaForCausalLM, sliding windows in use (use_sliding_window true or a sliding entry in
// layer_types), end-of-text ids outside the vocabulary, no max_position_embeddings, and all of read_transformer_config.
Result<TargetConfig> read_target_config(const std::filesystem::path& folder);

// The same from a parsed config.json, without a generation_config.json. `origin` names the document in errors; a
// document that is not an object is refused.
Result<TargetConfig> read_target_config(const Json& document, std::string origin);

}  // namespace blockdraft
