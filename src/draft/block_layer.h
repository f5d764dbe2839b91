// A drafter's decoder layer: the shared layer, with DFlash2's convolutions around both sublayers where there are any.
#pragma once

#include <cstddef>
#include <cstdint>

#include "nn/decoder_layer.h"
#include "tensor/context.h"
#include "tensor/paged_kv.h"
#include "tensor/tensor_view.h"
#include "tensor/weight_view.h"

namespace blockdraft {

// The convolution around one sublayer (spec 4.1). Side 0 is applied to the sublayer's input, side 1 to its output;
// the dynamic coefficients of both come out of one product with the input.
struct BlockConvolution {
  ConstTensorView base_kernel;   // [2 * taps, hidden]: side, tap
  WeightView kernel_projection;  // [2 * taps * groups, hidden]: side, tap, group
  int64_t group_size = 0;

  int64_t taps() const { return base_kernel.dim(0) / 2; }
};

struct BlockLayer {
  DecoderLayer decoder;
  BlockConvolution attention_conv;  // used if the drafter has convolutions
  BlockConvolution mlp_conv;
  bool has_convolutions = false;
};

// As visit_decoder_layer().
template <class Layer, class Visit>
Status visit_block_layer(Layer& layer, Visit visit) {
  BLOCKDRAFT_TRY(visit_decoder_layer(layer.decoder, visit));
  for (auto* conv : {&layer.attention_conv, &layer.mlp_conv}) {
    BLOCKDRAFT_TRY(visit(conv->base_kernel));
    BLOCKDRAFT_TRY(visit(conv->kernel_projection));
  }
  return {};
}

// In place on h [rows, hidden]. The rows of a sequence in input.batch are its block.
void block_layer(Context& context, const BlockLayer& layer, const LayerInput& input, const AttentionMask& mask,
                 const PagedKvView& kv, TensorView h);
size_t block_layer_scratch_bytes(const BlockLayer& layer, const TransformerConfig& config, int32_t num_threads,
                                 int64_t rows);

int64_t block_layer_bytes(const BlockLayer& layer);
int64_t block_layer_flops_per_row(const BlockLayer& layer);

}  // namespace blockdraft
