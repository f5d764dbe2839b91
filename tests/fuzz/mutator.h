// Random changes to inputs of the standalone fuzz driver.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace blockdraft {

// Deterministic: the same seed and the same calls give the same inputs on every machine.
class Mutator {
 public:
  explicit Mutator(uint64_t seed) : state_(seed) {}

  // One to eight changes to a random entry of the corpus, which must not be empty. At most kMaxBytes long.
  std::string next(const std::vector<std::string>& corpus);

  static constexpr size_t kMaxBytes = 1 << 16;

 private:
  uint64_t random();
  size_t below(size_t bound);  // in [0, bound); 0 for a bound of 0

  void change(std::string& input, const std::vector<std::string>& corpus);
  void flip_bit(std::string& input);
  void set_byte(std::string& input);
  void insert_bytes(std::string& input);
  void erase_range(std::string& input);
  void repeat_range(std::string& input);
  void splice(std::string& input, const std::string& other);
  void write_binary_integer(std::string& input);
  void replace_decimal_integer(std::string& input);
  void insert_token(std::string& input);

  uint64_t state_;
};

}  // namespace blockdraft
