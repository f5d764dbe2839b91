// The tensors of a drafter (spec 3.1 to 3.4).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "blockdraft/result.h"
#include "draft/block_layer.h"
#include "draft/drafter_config.h"
#include "nn/decoder_layer.h"
#include "nn/weight_store.h"

namespace blockdraft {

// DFlash2's candidate selector (spec 3.2).
struct SelectorWeights {
  WeightView predecessor_codebook;  // [vocabulary, rank]
  WeightView successor_codebook;    // [vocabulary, rank]
  WeightView hidden_projection;     // [rank, hidden]
};

// DSpark's sequential head and confidence head (spec 3.3).
struct MarkovWeights {
  WeightView markov_w1;   // [vocabulary, rank], indexed by target ids
  WeightView markov_w2;   // [draft_vocab_size, rank]
  WeightView gate_proj;   // gated: [rank, hidden + rank]
  WeightView joint_proj;  // rnn: [3 * rank, 2 * rank + hidden]
  WeightView confidence;  // [1, hidden] or [1, hidden + rank]
};

struct DrafterWeights {
  WeightView fc;                // [hidden, taps * target_hidden]
  ConstTensorView hidden_norm;  // [hidden]
  std::vector<BlockLayer> layers;
  ConstTensorView norm;  // [hidden]
  // k_proj and v_proj of all layers, in the order k0, v0, k1, v1, ...: context K/V is one product.
  std::vector<WeightView> context_kv_proj;

  SelectorWeights selector;  // of family dflash2
  MarkovWeights markov;      // of family dspark

  std::optional<WeightView> embed_tokens;  // the file's own copies, where it has them
  std::optional<WeightView> lm_head;       // [draft_vocab_size, hidden]
  std::vector<int32_t> draft_to_target;    // [draft_vocab_size]; empty: draft ids are target ids
};

// Calls visit(weight) for every matrix, norm and kernel (WeightView&, ConstTensorView&), as long as its Status is good.
// A part that the drafter does not have has no data.
template <class Visit>
Status visit_drafter_weights(DrafterWeights& weights, Visit visit) {
  BLOCKDRAFT_TRY(visit(weights.fc));
  BLOCKDRAFT_TRY(visit(weights.hidden_norm));
  for (BlockLayer& layer : weights.layers) BLOCKDRAFT_TRY(visit_block_layer(layer, visit));
  BLOCKDRAFT_TRY(visit(weights.norm));
  for (WeightView& weight : weights.context_kv_proj) BLOCKDRAFT_TRY(visit(weight));
  SelectorWeights& selector = weights.selector;
  MarkovWeights& markov = weights.markov;
  for (WeightView* weight :
       {&selector.predecessor_codebook, &selector.successor_codebook, &selector.hidden_projection, &markov.markov_w1,
        &markov.markov_w2, &markov.gate_proj, &markov.joint_proj, &markov.confidence}) {
    BLOCKDRAFT_TRY(visit(*weight));
  }
  if (weights.embed_tokens) BLOCKDRAFT_TRY(visit(*weights.embed_tokens));
  if (weights.lm_head) BLOCKDRAFT_TRY(visit(*weights.lm_head));
  return {};
}

// Every tensor of the file must be used or on the list of those that may be ignored: a missing or superfluous one
// would show only as poor acceptance (spec 2.8). From a store that does not read values: shapes without data, and no
// draft_to_target.
Result<DrafterWeights> load_drafter_weights(WeightStore& store, const DrafterConfig& config);

// What the file puts before the names of spec 3.1: "", "model." or "draft_model."; of random ones "".
Result<std::string> find_prefix(const Checkpoint& checkpoint);

}  // namespace blockdraft
