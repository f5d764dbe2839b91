#include "support/naive_target.h"

#include <cmath>
#include <stdexcept>

#include "support/take.h"

namespace blockdraft::test {
namespace {

void add(std::vector<double>& sum, const std::vector<double>& term) {
  for (size_t i = 0; i < sum.size(); ++i) sum[i] += term[i];
}

}  // namespace

NaiveTarget::NaiveTarget(const std::filesystem::path& folder) : config_(take(read_target_config(folder))) {
  if (config_.transformer.rope.type != RopeType::plain) throw std::runtime_error("only plain rope is written out here");
  weights_ = naive_weights(folder);
}

std::vector<double> NaiveTarget::product(const std::string& weight, const std::vector<double>& x) const {
  return naive_product(at(weight + ".weight"), x);
}

std::vector<double> NaiveTarget::normed(const std::vector<double>& x, const std::string& weight) const {
  const NaiveMatrix& w = at(weight + ".weight");
  double squares = 0;
  for (const double value : x) squares += value * value;
  const double factor = 1.0 / std::sqrt(squares / static_cast<double>(x.size()) + config_.transformer.rms_norm_eps);
  std::vector<double> y(x.size());
  for (size_t i = 0; i < x.size(); ++i) y[i] = x[i] * factor * static_cast<double>(w.values[i]);
  return y;
}

// Queries or keys of all heads, normed and rotated.
std::vector<double> NaiveTarget::heads(const std::string& prefix, const std::string& name, const std::vector<double>& x,
                                       size_t position) const {
  const auto dim = static_cast<size_t>(config_.transformer.head_dim);
  const std::vector<double> all = product(prefix + "self_attn." + name + "_proj", x);
  std::vector<double> out;
  for (size_t first = 0; first < all.size(); first += dim) {
    const std::vector<double> head(all.begin() + static_cast<int64_t>(first),
                                   all.begin() + static_cast<int64_t>(first + dim));
    const std::vector<double> n = normed(head, prefix + "self_attn." + name + "_norm");
    out.resize(first + dim);
    for (size_t i = 0; i < dim / 2; ++i) {
      const double frequency =
          std::pow(config_.transformer.rope.rope_theta, -2.0 * static_cast<double>(i) / static_cast<double>(dim));
      const double angle = static_cast<double>(position) * frequency;
      out[first + i] = n[i] * std::cos(angle) - n[i + dim / 2] * std::sin(angle);
      out[first + i + dim / 2] = n[i + dim / 2] * std::cos(angle) + n[i] * std::sin(angle);
    }
  }
  return out;
}

Rows NaiveTarget::attention(const std::string& prefix, const Rows& x) const {
  const auto dim = static_cast<size_t>(config_.transformer.head_dim);
  const auto num_heads = static_cast<size_t>(config_.transformer.num_attention_heads);
  const size_t group = num_heads / static_cast<size_t>(config_.transformer.num_key_value_heads);
  Rows q, k, v, out;
  for (size_t p = 0; p < x.size(); ++p) {
    q.push_back(heads(prefix, "q", x[p], p));
    k.push_back(heads(prefix, "k", x[p], p));
    v.push_back(product(prefix + "self_attn.v_proj", x[p]));
  }
  for (size_t p = 0; p < x.size(); ++p) {
    std::vector<double> mixed(num_heads * dim);
    for (size_t h = 0; h < num_heads; ++h) {
      const size_t kv_first = h / group * dim;
      std::vector<double> weights;
      double total = 0;
      for (size_t s = 0; s <= p; ++s) {
        double score = 0;
        for (size_t d = 0; d < dim; ++d) score += q[p][h * dim + d] * k[s][kv_first + d];
        // Normed queries and keys keep scores small enough for exp.
        weights.push_back(std::exp(score / std::sqrt(static_cast<double>(dim))));
        total += weights.back();
      }
      for (size_t s = 0; s <= p; ++s) {
        for (size_t d = 0; d < dim; ++d) mixed[h * dim + d] += weights[s] / total * v[s][kv_first + d];
      }
    }
    out.push_back(product(prefix + "self_attn.o_proj", mixed));
  }
  return out;
}

std::vector<double> NaiveTarget::mlp(const std::string& prefix, const std::vector<double>& x) const {
  std::vector<double> gate = product(prefix + "mlp.gate_proj", x);
  const std::vector<double> up = product(prefix + "mlp.up_proj", x);
  for (size_t i = 0; i < gate.size(); ++i) gate[i] = gate[i] / (1.0 + std::exp(-gate[i])) * up[i];
  return product(prefix + "mlp.down_proj", gate);
}

std::vector<Rows> NaiveTarget::residual_stream(std::span<const int32_t> ids) const {
  const NaiveMatrix& table = at("model.embed_tokens.weight");
  Rows h;
  for (const int32_t id : ids) {
    const auto row = table.values.begin() + id * table.columns;
    h.emplace_back(row, row + table.columns);
  }
  std::vector<Rows> stream = {h};
  for (int64_t layer = 0; layer < config_.transformer.num_hidden_layers; ++layer) {
    const std::string prefix = "model.layers." + std::to_string(layer) + ".";
    Rows x;
    for (const auto& row : h) x.push_back(normed(row, prefix + "input_layernorm"));
    const Rows attended = attention(prefix, x);
    for (size_t p = 0; p < h.size(); ++p) {
      add(h[p], attended[p]);
      add(h[p], mlp(prefix, normed(h[p], prefix + "post_attention_layernorm")));
    }
    stream.push_back(h);
  }
  return stream;
}

std::vector<double> NaiveTarget::logits(std::span<const int32_t> ids) const {
  const Rows last = residual_stream(ids).back();
  return product(config_.tie_word_embeddings ? "model.embed_tokens" : "lm_head", normed(last.back(), "model.norm"));
}

}  // namespace blockdraft::test
