#include "cli/progress.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>
#include <unistd.h>

#include "cli/output.h"

namespace blockdraft {
namespace {

constexpr size_t kBarColumns = 30;
constexpr double kSecondsBetween = 0.1;

std::string bar(const std::string& label, size_t done, size_t total) {
  const size_t filled = total == 0 ? kBarColumns : kBarColumns * std::min(done, total) / total;
  return fmt::format("\r{} [{}{}] {}/{}\033[K", label, std::string(filled, '#'), std::string(kBarColumns - filled, '.'),
                     done, total);
}

}  // namespace

ProgressBar::ProgressBar(std::string label, size_t total)
    : label_(std::move(label)), total_(total), enabled_(isatty(STDERR_FILENO) == 1) {
  if (enabled_) write_error(bar(label_, 0, total_));
}

ProgressBar::~ProgressBar() {
  if (enabled_) write_error("\r\033[K");
}

void ProgressBar::update(size_t done) {
  if (!enabled_ || done <= shown_ || since_drawn_.elapsed_s() < kSecondsBetween) return;
  shown_ = done;
  since_drawn_ = Timer();
  write_error(bar(label_, done, total_));
}

}  // namespace blockdraft
