// One pass of a drafter over the block rows of all sequences.
#pragma once

#include <span>

#include "draft/drafter_config.h"
#include "draft/drafter_weights.h"
#include "nn/kv_cache.h"
#include "tensor/batch_view.h"
#include "tensor/context.h"
#include "tensor/tensor_view.h"
#include "tensor/weight_view.h"

namespace blockdraft {

struct BlockInput {
  BatchView batch;          // rows: an anchor and mask tokens, at the anchor's position and those after it
  WeightView embed_tokens;  // the target's table, or the drafter's own copy
  float embedding_scale = 1.0f;
  ConstTensorView inv_freq;  // [head_dim / 2]
};

// hidden [rows, hidden] = norm(layers(embedding(ids) * scale)) (spec 1.5 to 1.7). Block rows see the context in the
// pages and one another; their K/V are left in the pages, to be overwritten.
void block_forward(Context& context, const DrafterConfig& config, const DrafterWeights& weights, KvCache& cache,
                   const BlockInput& input, TensorView hidden);
size_t block_forward_scratch_bytes(const DrafterConfig& config, const DrafterWeights& weights, int32_t num_threads,
                                   int64_t rows);

}  // namespace blockdraft
