#include "draft/block_forward.h"

#include "draft/block_layer.h"
#include "ops/embedding.h"
#include "ops/rms_norm.h"
#include "ops/rope.h"
#include "tensor/recorder.h"

namespace blockdraft {

void block_forward(Context& context, const DrafterConfig& config, const DrafterWeights& weights, KvCache& cache,
                   const BlockInput& input, TensorView hidden) {
  if (is_repeated(context)) return;
  const ArenaScope scope(*context.arena);
  const TransformerConfig& transformer = config.transformer;
  const TensorView rope = context.arena->take_f32({input.batch.num_rows, transformer.head_dim});

  embedding(context, hidden, input.batch.token_ids, input.embed_tokens, input.embedding_scale);
  record(context, "block_input", hidden);
  rope_table(context, rope, input.batch.positions, input.inv_freq,
             static_cast<float>(transformer.rope.attention_factor));
  const LayerInput layer_input{transformer, input.batch, rope};
  for (size_t index = 0; index < weights.layers.size(); ++index) {
    const AttentionMask mask{.causal = config.layers[index].causal, .window = config.layers[index].window};
    block_layer(context, weights.layers[index], layer_input, mask, cache.layer(static_cast<int32_t>(index)), hidden);
    record_layer(context, "layer_output", index, hidden);
  }
  rms_norm(context, hidden, hidden, weights.norm, static_cast<float>(transformer.rms_norm_eps));
  record(context, "hidden", hidden);
}

size_t block_forward_scratch_bytes(const DrafterConfig& config, const DrafterWeights& weights, int32_t num_threads,
                                   int64_t rows) {
  return arena_bytes_f32(rows * config.transformer.head_dim) +
         block_layer_scratch_bytes(weights.layers.front(), config.transformer, num_threads, rows);
}

}  // namespace blockdraft
