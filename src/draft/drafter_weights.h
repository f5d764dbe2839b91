// The tensors of a drafter (spec 3.1, 3.4).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "blockdraft/result.h"
#include "draft/drafter_config.h"
#include "nn/decoder_layer.h"
#include "nn/weight_store.h"

namespace blockdraft {

struct DrafterWeights {
  WeightView fc;                // [hidden, taps * target_hidden]
  ConstTensorView hidden_norm;  // [hidden]
  std::vector<DecoderLayer> layers;
  ConstTensorView norm;  // [hidden]
  // k_proj and v_proj of all layers, in the order k0, v0, k1, v1, ...: context K/V is one product.
  std::vector<WeightView> context_kv_proj;

  std::optional<WeightView> embed_tokens;  // the file's own copies, where it has them
  std::optional<WeightView> lm_head;       // [draft_vocab_size, hidden]
  std::vector<int32_t> draft_to_target;    // [draft_vocab_size]; empty: draft ids are target ids
};

// Every tensor of the file must be used or on the list of those that may be ignored: a missing or superfluous one
// would show only as poor acceptance (spec 2.8).
Result<DrafterWeights> load_drafter_weights(WeightStore& store, const DrafterConfig& config);

// What the file puts before the names of spec 3.1: "", "model." or "draft_model.".
Result<std::string> find_prefix(const Checkpoint& checkpoint);

}  // namespace blockdraft
