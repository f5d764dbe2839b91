// From a host's words on sampling to those of the modules.
#pragma once

#include "blockdraft/result.h"
#include "blockdraft/sampling.h"
#include "verify/sampling_params.h"

namespace blockdraft {

// Errors: invalid_argument, naming the field, the value found and the values expected.
Result<SamplingParams> sampling_params(const Sampling& sampling);

}  // namespace blockdraft
