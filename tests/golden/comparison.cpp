#include "golden/comparison.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace blockdraft::golden {

double Comparison::tensor(const std::string& quantity, std::span<const float> found, std::span<const float> expected) {
  ++num_checks_;
  if (found.size() != expected.size() || expected.empty()) {
    problem(fmt::format("{} has {} values, expected {}", quantity, found.size(), expected.size()));
    return INFINITY;
  }
  double magnitude = 0;
  double error = 0;
  size_t worst = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    magnitude = std::max(magnitude, static_cast<double>(std::abs(expected[i])));
    const double difference = std::abs(static_cast<double>(found[i]) - expected[i]);
    if (!(difference <= error)) {  // a NaN counts as the worst
      error = std::isnan(difference) ? INFINITY : difference;
      worst = i;
    }
  }
  const double relative = error / magnitude;
  double& largest = errors_[quantity];
  largest = std::max(largest, relative);
  if (!(relative <= tolerance_)) {
    problem(
        fmt::format("{} differs by {:.2g} of its largest magnitude (tolerance {:.2g}), first at element {}: found {}, "
                    "expected {}",
                    quantity, relative, tolerance_, worst, found[worst], expected[worst]));
  }
  return error;
}

void Comparison::tokens(const std::string& quantity, std::span<const int32_t> found, std::span<const int32_t> expected,
                        std::span<const float> margins, double error) {
  ++num_checks_;
  if (found.size() != expected.size() || margins.size() != expected.size()) {
    problem(fmt::format("{}: {} tokens, expected {} with {} margins", quantity, found.size(), expected.size(),
                        margins.size()));
    return;
  }
  for (size_t i = 0; i < expected.size(); ++i) {
    if (found[i] == expected[i]) {
      ++num_equal_tokens_;
    } else {
      near_tie(fmt::format("{}: token {} is {}, expected {}", quantity, i, found[i], expected[i]),
               static_cast<double>(margins[i]), error);
    }
  }
}

void Comparison::near_tie(const std::string& what, double margin, double error) {
  if (margin <= error) {
    ++num_near_ties_;
  } else {
    problem(fmt::format("{} (margin {:.2g}, error {:.2g})", what, margin, error));
  }
}

void Comparison::require(const std::string& what, bool holds) {
  ++num_checks_;
  if (!holds) problem(what);
}

std::string Comparison::summary() const {
  if (num_checks_ == 0) return "nothing was checked";
  if (!problems_.empty()) {
    return fmt::format("{}{}", problems_.front(),
                       problems_.size() > 1 ? fmt::format(" (and {} more)", problems_.size() - 1) : "");
  }
  std::string text;
  for (const auto& [quantity, error] : errors_) text += fmt::format("{} {:.1e}, ", quantity, error);
  return text + fmt::format("{} tokens equal, {} near ties", num_equal_tokens_, num_near_ties_);
}

}  // namespace blockdraft::golden
