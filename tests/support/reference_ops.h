// The ops by their definitions, in double: slow and plain. Vectors are row-major.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace blockdraft::test {

// sum_k x[k] * w[k]; magnitude is the sum of absolute products, the scale of its rounding error.
struct ReferenceSum {
  double value = 0.0;
  double magnitude = 0.0;
};
template <class X, class W>
ReferenceSum reference_dot(const X* x, const W* w, int64_t count) {
  ReferenceSum sum;
  for (int64_t k = 0; k < count; ++k) {
    const double product = static_cast<double>(x[k]) * static_cast<double>(w[k]);
    sum.value += product;
    sum.magnitude += std::abs(product);
  }
  return sum;
}

template <class X>
std::vector<double> reference_rms_norm(const X* x, const float* weight, int64_t dim, double eps) {
  double squares = 0.0;
  for (int64_t i = 0; i < dim; ++i) squares += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  const double factor = 1.0 / std::sqrt(squares / static_cast<double>(dim) + eps);
  std::vector<double> out(static_cast<size_t>(dim));
  for (int64_t i = 0; i < dim; ++i) {
    out[static_cast<size_t>(i)] = static_cast<double>(x[i]) * factor * static_cast<double>(weight[i]);
  }
  return out;
}

// One head of 2 * half elements, rotated as pairs (i, i + half).
template <class X>
std::vector<double> reference_rope(const X* x, const float* inv_freq, int64_t half, int64_t position, double factor) {
  std::vector<double> out(static_cast<size_t>(2 * half));
  for (int64_t i = 0; i < half; ++i) {
    const double angle = static_cast<double>(position) * static_cast<double>(inv_freq[i]);
    const auto low = static_cast<double>(x[i]);
    const auto high = static_cast<double>(x[i + half]);
    out[static_cast<size_t>(i)] = (low * std::cos(angle) - high * std::sin(angle)) * factor;
    out[static_cast<size_t>(i + half)] = (high * std::cos(angle) + low * std::sin(angle)) * factor;
  }
  return out;
}

// Whether the query at q sees the key at p, in a sequence that ends before `end`.
inline bool reference_visible(int64_t q, int64_t p, int64_t end, bool causal, int64_t window) {
  if (causal ? p > q : p >= end) return false;
  return window == 0 || std::abs(q - p) < window;
}

// One query against keys 0 .. end - 1 of one head; key and value of position p begin at k + p * stride, v + p * stride.
inline std::vector<double> reference_attention(const float* query, const float* k, const float* v, int64_t stride,
                                               int64_t head_dim, int64_t position, int64_t end, bool causal,
                                               int64_t window, double scale) {
  std::vector<double> scores(static_cast<size_t>(end), -HUGE_VAL);
  for (int64_t p = 0; p < end; ++p) {
    if (!reference_visible(position, p, end, causal, window)) continue;
    scores[static_cast<size_t>(p)] = reference_dot(query, k + p * stride, head_dim).value * scale;
  }
  const double max = *std::max_element(scores.begin(), scores.end());
  std::vector<double> out(static_cast<size_t>(head_dim));
  double sum = 0.0;
  for (int64_t p = 0; p < end; ++p) {
    const double weight = std::exp(scores[static_cast<size_t>(p)] - max);
    if (weight == 0.0) continue;
    sum += weight;
    for (int64_t d = 0; d < head_dim; ++d) {
      out[static_cast<size_t>(d)] += weight * static_cast<double>(v[p * stride + d]);
    }
  }
  for (double& value : out) value /= sum;
  return out;
}

}  // namespace blockdraft::test
