// Times of the parts of a cycle, on the CPU and on a card.
#pragma once

#include <numeric>

#include "base/has_cuda.h"
#include "base/timer.h"
#include "engine/stats.h"
#include "tensor/context.h"
#include "tensor/cuda_device.h"

namespace blockdraft {

enum class Part { context, propose, verify };

// On a card the parts are measured there, by marks between them on its stream; what is left of the cycle's time, that
// of the CPU and of waiting, is noted as the time of acceptance.
class PartTimes {
 public:
  PartTimes(const Context& context, RunTimes& times) : device_(context.cuda), times_(times) {}

  void begin() {
    begun_us_ = timer_.elapsed_us();
    mark(0);
  }
  void end(Part part) {
    mark(static_cast<int>(part) + 1);
    ended_us_[static_cast<int>(part)] = timer_.elapsed_us();
  }
  // Once the work is done; what was done since the last part is acceptance.
  void finish() {
    double of_parts = 0;
    for (const Part part : {Part::context, Part::propose, Part::verify}) {
      const auto us = static_cast<float>(elapsed_us(static_cast<int>(part)));
      list_of(part).push_back(us);
      of_parts += static_cast<double>(us);
    }
    times_.accept_us.push_back(static_cast<float>(timer_.elapsed_us() - of_parts));
  }

 private:
  std::vector<float>& list_of(Part part) {
    return part == Part::context ? times_.context_us : part == Part::propose ? times_.propose_us : times_.verify_us;
  }
  void mark(int index) {
    if constexpr (kHasCuda) {
      if (device_ != nullptr) device_->mark(index);
    }
  }
  double elapsed_us(int part) const {
    if constexpr (kHasCuda) {
      if (device_ != nullptr) return static_cast<double>(device_->elapsed_us(part, part + 1));
    }
    return ended_us_[part] - (part == 0 ? begun_us_ : ended_us_[part - 1]);
  }

  CudaDevice* device_;
  RunTimes& times_;
  Timer timer_;
  double begun_us_ = 0;
  double ended_us_[3] = {};
};

}  // namespace blockdraft
