#include "draft/block_layer.h"

#include <algorithm>

#include "ops/activation.h"
#include "ops/grouped_conv.h"
#include "ops/linear.h"
#include "ops/rms_norm.h"

namespace blockdraft {
namespace {

// One side of a convolution; `dynamic` holds the coefficients of both.
void convolve(Context& context, const BlockConvolution& conv, int64_t side, const BatchView& batch, ConstTensorView x,
              TensorView dynamic, TensorView out) {
  const int64_t taps = conv.taps();
  const int64_t coefficients = dynamic.dim(1) / 2;
  const ConstTensorView base{conv.base_kernel.row(side * taps), DType::f32, Shape{taps, conv.base_kernel.dim(1)},
                             conv.base_kernel.row_stride};
  grouped_conv(context, {.out = out,
                         .x = x,
                         .base = base,
                         .dynamic = columns_of(dynamic, side * coefficients, coefficients),
                         .batch = batch,
                         .group_size = conv.group_size});
}

// h += conv_1(sublayer(conv_0(norm(h)))). `sublayer(input, output)` reads and replaces whole matrices.
template <class Sublayer>
void convolved_sublayer(Context& context, const BlockConvolution& conv, ConstTensorView norm, const LayerInput& input,
                        TensorView h, const Sublayer& sublayer) {
  const ArenaScope scope(*context.arena);
  const TensorView x = context.arena->take_f32(h.shape);
  const TensorView y = context.arena->take_f32(h.shape);
  const TensorView dynamic = context.arena->take_f32({h.dim(0), conv.kernel_projection.out_features});
  rms_norm(context, x, h, norm, static_cast<float>(input.config.rms_norm_eps));
  // Its errors would multiply all that the sublayer gets and gives.
  linear(context, {.out = dynamic, .x = x, .weights = {&conv.kernel_projection, 1}, .rounds = false});
  convolve(context, conv, 0, input.batch, x, dynamic, y);
  sublayer(y, x);
  convolve(context, conv, 1, input.batch, x, dynamic, y);
  accumulate(context, h, y);
}

}  // namespace

void block_layer(Context& context, const BlockLayer& layer, const LayerInput& input, const AttentionMask& mask,
                 const PagedKvView& kv, TensorView h) {
  const DecoderLayer& decoder = layer.decoder;
  if (!layer.has_convolutions) {
    decoder_layer(context, decoder, input, mask, kv, h);
    return;
  }
  convolved_sublayer(context, layer.attention_conv, decoder.input_layernorm, input, h,
                     [&](ConstTensorView x, TensorView y) {
                       attention_sublayer(context, decoder, input, mask, kv, x, y, SublayerOutput::replaces);
                     });
  convolved_sublayer(
      context, layer.mlp_conv, decoder.post_attention_layernorm, input, h,
      [&](ConstTensorView x, TensorView y) { mlp_sublayer(context, decoder, input, x, y, SublayerOutput::replaces); });
}

size_t block_layer_scratch_bytes(const BlockLayer& layer, const TransformerConfig& config, int32_t num_threads,
                                 int64_t rows) {
  const size_t plain = decoder_layer_scratch_bytes(config, num_threads, rows);
  if (!layer.has_convolutions) return plain;
  return plain + arena_bytes_f32(rows * config.hidden_size) +
         arena_bytes_f32(rows * std::max(layer.attention_conv.kernel_projection.out_features,
                                         layer.mlp_conv.kernel_projection.out_features));
}

int64_t block_layer_bytes(const BlockLayer& layer) {
  const int64_t plain = decoder_layer_bytes(layer.decoder);
  if (!layer.has_convolutions) return plain;
  return plain + layer.attention_conv.kernel_projection.size_bytes() + layer.mlp_conv.kernel_projection.size_bytes();
}

int64_t block_layer_flops_per_row(const BlockLayer& layer) {
  int64_t flops = decoder_layer_flops_per_row(layer.decoder);
  if (!layer.has_convolutions) return flops;
  for (const BlockConvolution* conv : {&layer.attention_conv, &layer.mlp_conv}) {
    flops += 2 * conv->kernel_projection.out_features * conv->kernel_projection.in_features;
  }
  return flops;
}

}  // namespace blockdraft
