// Wall-clock intervals.
#pragma once

#include <chrono>

namespace blockdraft {

class Timer {
 public:
  double elapsed_us() const {
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start_).count();
  }
  double elapsed_s() const { return elapsed_us() * 1e-6; }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace blockdraft
