// From the views that a host gives to those that the drafter computes with.
#pragma once

#include "blockdraft/drafter.h"
#include "blockdraft/result.h"
#include "draft/draft_model.h"

namespace blockdraft {

// Errors: invalid_argument, naming the field, the value found and the value expected.
Result<TargetWeights> target_weights(const TargetTensors& target);

}  // namespace blockdraft
