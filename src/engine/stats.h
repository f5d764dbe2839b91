// Where the time of a run went.
#pragma once

#include <vector>

namespace blockdraft {

// Microseconds, one entry a cycle.
struct RunTimes {
  double total_s = 0;
  double prefill_s = 0;
  double first_token_s = 0;  // from the start of the run
  std::vector<float> context_us, propose_us, verify_us, accept_us;
};

}  // namespace blockdraft
