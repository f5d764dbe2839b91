// Where the time of a run went.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace blockdraft {

// Microseconds, one entry a cycle.
struct RunTimes {
  double total_s = 0;
  double prefill_s = 0;
  double first_token_s = 0;  // from the start of the run
  int64_t hand_offs = 0;     // of work to the threads, in all cycles together (ThreadPool::hand_offs)
  std::vector<float> context_us, propose_us, verify_us, accept_us;

  // Makes room, so that a cycle that notes its times allocates nothing.
  void reserve(size_t cycles) {
    for (std::vector<float>* times_us : {&context_us, &propose_us, &verify_us, &accept_us}) times_us->reserve(cycles);
  }
};

}  // namespace blockdraft
