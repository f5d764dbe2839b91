#include "head/host_sampling.h"

#include <limits>

#include "base/error.h"

namespace blockdraft {

Result<SamplingParams> sampling_params(const Sampling& sampling) {
  const Acceptance acceptance = sampling.acceptance;
  if (acceptance != Acceptance::coupled && acceptance != Acceptance::ratio) {
    return make_error(Code::invalid_argument, "acceptance is {}, expected coupled or ratio",
                      static_cast<int>(acceptance));
  }
  SamplingParams params{
      .temperature = sampling.temperature,
      .top_k = sampling.top_k,
      .top_p = sampling.top_p,
      .min_p = sampling.min_p,
      .seed = sampling.seed,
      .choice = sampling.choice,
      .acceptance = acceptance == Acceptance::ratio ? AcceptanceRule::ratio : AcceptanceRule::coupled};
  BLOCKDRAFT_TRY(check_sampling(params, std::numeric_limits<int32_t>::max()));  // without biases no id is looked at
  return params;
}

}  // namespace blockdraft
