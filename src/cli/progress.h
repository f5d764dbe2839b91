// A progress bar on stderr, for work of more than a moment.
#pragma once

#include <cstddef>
#include <string>

#include "base/timer.h"

namespace blockdraft {

// Shows nothing unless stderr is a terminal. The destructor takes the bar off the screen, so that messages that follow
// stand on a line of their own.
class ProgressBar {
 public:
  ProgressBar(std::string label, size_t total);
  ~ProgressBar();

  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  void update(size_t done);

 private:
  std::string label_;
  size_t total_;
  size_t shown_ = 0;
  bool enabled_;
  Timer since_drawn_;
};

}  // namespace blockdraft
