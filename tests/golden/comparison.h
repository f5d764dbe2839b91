// What a fixture case found: largest relative error of each quantity, token choices, near ties.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace blockdraft::golden {

// |found - expected| <= tolerance * largest magnitude of the expected tensor.
inline constexpr double kFloat32Tolerance = 1e-4;
inline constexpr double kBf16Tolerance = 2e-2;           // where products round their inputs to BF16; a card
inline constexpr double kBf16ConvolvedTolerance = 4e-2;  // DFlash2: coefficients multiply what sublayers get and give

class Comparison {
 public:
  explicit Comparison(double tolerance) : tolerance_(tolerance) {}

  // Keeps the largest error of each quantity. Returns the largest absolute error.
  double tensor(const std::string& quantity, std::span<const float> found, std::span<const float> expected);
  // Tokens must be equal where the margin exceeds the error; the others are counted as near ties.
  void tokens(const std::string& quantity, std::span<const int32_t> found, std::span<const int32_t> expected,
              std::span<const float> margins, double error);
  // Something else than expected, which may be if the margin does not exceed the error: then it is counted.
  void near_tie(const std::string& what, double margin, double error);
  void require(const std::string& what, bool holds);

  bool passed() const { return problems_.empty() && num_checks_ > 0; }
  // "hidden 1.2e-07, logits 3e-07, 35 tokens equal, 0 near ties", or the first problem.
  std::string summary() const;

 private:
  void problem(std::string text) { problems_.push_back(std::move(text)); }

  double tolerance_;
  int64_t num_checks_ = 0;
  int64_t num_equal_tokens_ = 0;
  int64_t num_near_ties_ = 0;
  std::map<std::string, double> errors_;  // quantity to largest relative error
  std::vector<std::string> problems_;
};

}  // namespace blockdraft::golden
