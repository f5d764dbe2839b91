// scale_softcap() of one row (ops/activation.h).
#pragma once

#include <cstdint>

namespace blockdraft::cpu {

void scale_softcap_row(float* values, int64_t count, float multiplier, float softcap);

}  // namespace blockdraft::cpu
