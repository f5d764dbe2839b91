// Functions of single elements that several kernels share, so that they agree to the bit.
#pragma once

#include <cmath>

namespace blockdraft::cu {

__device__ inline float sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }

__device__ inline float silu_mul(float gate, float up) { return gate / (1.0f + expf(-gate)) * up; }

// softcap 0: none.
__device__ inline float scale_softcap(float value, float multiplier, float softcap) {
  value *= multiplier;
  return softcap == 0.0f ? value : tanhf(value / softcap) * softcap;
}

}  // namespace blockdraft::cu
