// What the kernels of a card can do, for whoever loads a model: a Status that names what is found and what is expected.
#pragma once

#include <cstdint>

#include "blockdraft/result.h"
#include "tensor/cuda_device.h"

namespace blockdraft::cu {

inline constexpr int64_t kMaxTopK = 1024;

Status supports_attention(const CudaDevice& device, int32_t num_heads, int32_t num_kv_heads, int32_t head_dim);
Status supports_top_k(int64_t k);

}  // namespace blockdraft::cu
