#include "ops/cpu/score_filter.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

namespace blockdraft::cpu {

namespace {

constexpr float kDropped = -std::numeric_limits<float>::infinity();

// Integers in the order of the floats: larger scores have larger keys, equal ones equal keys.
uint32_t key_of(float score) {
  const auto bits = std::bit_cast<uint32_t>(score + 0.0f);  // -0 is 0
  return (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
}

// A place in the list of scores, largest first: the first score of which the scores before it weigh `limit` or more
// does not belong to the leading part. `before` is what all scores above `key` weigh.
struct Cut {
  uint32_t key = 0;
  double before = 0;
};

// Finds the key at which the weights of the largest scores add up to `fraction` of the total, or more, byte by byte
// of the key: no sorting, and sums in the order of ids.
template <class Weight>
Cut find_cut(const float* scores, int64_t count, const Weight& weight, double limit) {
  constexpr int kBits = 8;
  Cut cut;
  for (int shift = 32 - kBits; shift >= 0; shift -= kBits) {
    std::array<double, 1 << kBits> sums{};
    const uint64_t prefix = uint64_t{cut.key} >> (shift + kBits);
    for (int64_t i = 0; i < count; ++i) {
      const uint32_t key = key_of(scores[i]);
      if (uint64_t{key} >> (shift + kBits) == prefix) sums[key >> shift & 0xFF] += weight(scores[i]);
    }
    uint32_t digit = 0xFF;
    while (digit > 0 && cut.before + sums[digit] < limit) cut.before += sums[digit--];
    cut.key |= digit << shift;
  }
  return cut;
}

// Keeps what lies above the cut, and at the cut the lower ids as long as less than `limit` lies before them.
template <class Weight>
void apply_cut(float* scores, int64_t count, const Weight& weight, double limit, Cut cut) {
  for (int64_t i = 0; i < count; ++i) {
    const uint32_t key = key_of(scores[i]);
    if (key > cut.key) continue;
    const bool keep = key == cut.key && cut.before < limit;
    if (keep) cut.before += weight(scores[i]);
    if (!keep) scores[i] = kDropped;
  }
}

}  // namespace

void keep_top_k(float* scores, int64_t count, int64_t top_k) {
  const auto weight = [](float) { return 1.0; };
  const auto limit = static_cast<double>(top_k);
  apply_cut(scores, count, weight, limit, find_cut(scores, count, weight, limit));
}

void keep_top_p(float* scores, int64_t count, float top_p) {
  const float max = *std::max_element(scores, scores + count);
  const auto weight = [max](float score) { return static_cast<double>(std::exp(score - max)); };
  double total = 0;
  for (int64_t i = 0; i < count; ++i) total += weight(scores[i]);
  const double limit = static_cast<double>(top_p) * total;
  apply_cut(scores, count, weight, limit, find_cut(scores, count, weight, limit));
}

void keep_min_p(float* scores, int64_t count, float min_p) {
  const float max = *std::max_element(scores, scores + count);
  for (int64_t i = 0; i < count; ++i) {
    if (std::exp(scores[i] - max) < min_p) scores[i] = kDropped;
  }
}

}  // namespace blockdraft::cpu
