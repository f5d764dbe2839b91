// Whether a card's kernels do what a model needs, asked before it is loaded.
#pragma once

#include "base/has_cuda.h"
#include "blockdraft/result.h"
#include "nn/transformer_config.h"
#include "ops/cuda/support.h"

namespace blockdraft {

// `device` null, a CPU: everything is.  Errors: unsupported, naming what is found and what is expected.
inline Status card_supports(const CudaDevice* device, const TransformerConfig& config) {
  if constexpr (kHasCuda) {
    if (device == nullptr) return {};
    return cu::supports_attention(*device, static_cast<int32_t>(config.num_attention_heads),
                                  static_cast<int32_t>(config.num_key_value_heads),
                                  static_cast<int32_t>(config.head_dim));
  }
  return {};
}

}  // namespace blockdraft
