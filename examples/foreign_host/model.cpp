#include "model.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <stdexcept>

#include <nlohmann/json.hpp>

namespace {

nlohmann::json read_json(const std::filesystem::path& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read " + path.string());
  return nlohmann::json::parse(file);
}

// Rows of the tables beyond the tokenizer's ids are padding.
int64_t count_ids(const nlohmann::json& tokenizer) {
  int64_t largest = -1;
  for (const auto& [token, id] : tokenizer.at("model").at("vocab").items())
    largest = std::max(largest, id.get<int64_t>());
  for (const auto& added : tokenizer.at("added_tokens")) largest = std::max(largest, added.at("id").get<int64_t>());
  return largest + 1;
}

// In 16 partial sums, which the compiler keeps in vector registers.
float dot(const float* a, const float* b, int64_t count) {
  constexpr int64_t kLanes = 16;
  std::array<float, kLanes> sums{};
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (int64_t lane = 0; lane < kLanes; ++lane) sums[lane] += a[i + lane] * b[i + lane];
  }
  float total = 0;
  for (const float sum : sums) total += sum;
  for (; i < count; ++i) total += a[i] * b[i];
  return total;
}

// x [rows, weight.columns] times the transposed weight: [rows, weight.rows].
std::vector<float> linear(const std::vector<float>& x, const Matrix& weight) {
  const auto rows = static_cast<int64_t>(x.size()) / weight.columns;
  std::vector<float> out(static_cast<size_t>(rows * weight.rows));
  for (int64_t n = 0; n < weight.rows; ++n) {
    for (int64_t row = 0; row < rows; ++row) {
      out[row * weight.rows + n] = dot(x.data() + row * weight.columns, weight.row(n), weight.columns);
    }
  }
  return out;
}

// Each group of weight.columns numbers divided by its root mean square, times the weight.
void normalize(std::vector<float>& x, const Matrix& weight, float eps) {
  const int64_t size = weight.columns;
  for (size_t first = 0; first < x.size(); first += size) {
    float* group = x.data() + first;
    const float scale = 1.0f / std::sqrt(dot(group, group, size) / static_cast<float>(size) + eps);
    for (int64_t i = 0; i < size; ++i) group[i] *= scale * weight.values[i];
  }
}

void add(std::vector<float>& x, const std::vector<float>& y) {
  for (size_t i = 0; i < x.size(); ++i) x[i] += y[i];
}

void softmax(std::vector<float>& scores) {
  const float largest = *std::max_element(scores.begin(), scores.end());
  float total = 0;
  for (float& score : scores) total += score = std::exp(score - largest);
  for (float& score : scores) score /= total;
}

}  // namespace

Model::Model(const std::filesystem::path& folder) : weights_(read_weights(folder)) {
  const nlohmann::json config = read_json(folder / "config.json");
  if (config.at("architectures").at(0) != "Qwen3ForCausalLM") throw std::runtime_error("only Qwen3 is supported");
  num_layers_ = config.at("num_hidden_layers");
  num_heads_ = config.at("num_attention_heads");
  num_kv_heads_ = config.at("num_key_value_heads");
  head_size_ = config.at("head_dim");
  hidden_size_ = config.at("hidden_size");
  eps_ = config.at("rms_norm_eps");
  rope_theta_ = config.at("rope_theta");
  tied_ = config.at("tie_word_embeddings");
  const nlohmann::json& eos = config.at("eos_token_id");
  if (eos.is_array()) stop_ids_ = eos.get<std::vector<int32_t>>();
  if (eos.is_number()) stop_ids_ = {eos.get<int32_t>()};
  num_real_ids_ = std::min(count_ids(read_json(folder / "tokenizer.json")), embed_tokens().rows);
  for (int64_t index = 0; index < num_layers_; ++index) {
    const std::string prefix = "model.layers." + std::to_string(index) + ".";
    const auto get = [&](const char* name) { return &weight(prefix + name + ".weight"); };
    layers_.push_back({get("input_layernorm"), get("self_attn.q_proj"), get("self_attn.k_proj"),
                       get("self_attn.v_proj"), get("self_attn.q_norm"), get("self_attn.k_norm"),
                       get("self_attn.o_proj"), get("post_attention_layernorm"), get("mlp.gate_proj"),
                       get("mlp.up_proj"), get("mlp.down_proj")});
  }
}

const Matrix& Model::weight(const std::string& name) const {
  const auto found = weights_.find(name);
  if (found == weights_.end()) throw std::runtime_error("no tensor " + name);
  return found->second;
}

// Rotates pairs (i, i + half) of one head.
void Model::rotate(float* head, int64_t position) const {
  const int64_t half = head_size_ / 2;
  for (int64_t i = 0; i < half; ++i) {
    const float frequency = std::pow(rope_theta_, -static_cast<float>(2 * i) / static_cast<float>(head_size_));
    const float angle = static_cast<float>(position) * frequency;
    const float a = head[i], b = head[i + half];
    head[i] = a * std::cos(angle) - b * std::sin(angle);
    head[i + half] = b * std::cos(angle) + a * std::sin(angle);
  }
}

std::vector<float> Model::attention(const LayerWeights& layer, Cache::Layer& cache, int64_t first_position,
                                    const std::vector<float>& x) const {
  std::vector<float> queries = linear(x, *layer.q), keys = linear(x, *layer.k), values = linear(x, *layer.v);
  const int64_t query_size = num_heads_ * head_size_, kv_size = num_kv_heads_ * head_size_;
  const auto rows = static_cast<int64_t>(queries.size()) / query_size;
  normalize(queries, *layer.q_norm, eps_);
  normalize(keys, *layer.k_norm, eps_);
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t h = 0; h < num_heads_; ++h) rotate(&queries[row * query_size + h * head_size_], first_position + row);
    for (int64_t h = 0; h < num_kv_heads_; ++h) rotate(&keys[row * kv_size + h * head_size_], first_position + row);
  }
  cache.keys.insert(cache.keys.end(), keys.begin(), keys.end());
  cache.values.insert(cache.values.end(), values.begin(), values.end());

  std::vector<float> mixed(queries.size());
  for (int64_t row = 0; row < rows; ++row) {
    std::vector<float> scores(static_cast<size_t>(first_position + row + 1));  // a row sees itself and what is before
    for (int64_t h = 0; h < num_heads_; ++h) {
      const int64_t shared = h / (num_heads_ / num_kv_heads_) * head_size_;
      const float* query = &queries[row * query_size + h * head_size_];
      for (size_t j = 0; j < scores.size(); ++j) {
        scores[j] =
            dot(query, &cache.keys[j * kv_size + shared], head_size_) / std::sqrt(static_cast<float>(head_size_));
      }
      softmax(scores);
      float* out = &mixed[row * query_size + h * head_size_];
      for (size_t j = 0; j < scores.size(); ++j) {
        for (int64_t i = 0; i < head_size_; ++i) out[i] += scores[j] * cache.values[j * kv_size + shared + i];
      }
    }
  }
  return linear(mixed, *layer.o);
}

std::vector<float> Model::mlp(const LayerWeights& layer, const std::vector<float>& x) const {
  std::vector<float> gate = linear(x, *layer.gate);
  const std::vector<float> up = linear(x, *layer.up);
  for (size_t i = 0; i < gate.size(); ++i) gate[i] = gate[i] / (1.0f + std::exp(-gate[i])) * up[i];
  return linear(gate, *layer.down);
}

Pass Model::forward(Cache& cache, std::span<const int32_t> tokens, std::span<const int32_t> tap_layers) const {
  cache.layers.resize(layers_.size());
  std::vector<float> h;
  for (const int32_t token : tokens) {
    const float* row = embed_tokens().row(token);
    h.insert(h.end(), row, row + hidden_size_);
  }
  std::vector<float> taps(h.size() * tap_layers.size());
  const auto keep_taps = [&](int64_t layer) {
    for (size_t tap = 0; tap < tap_layers.size(); ++tap) {
      if (tap_layers[tap] != layer) continue;
      for (size_t row = 0; row < tokens.size(); ++row) {
        std::copy_n(&h[row * hidden_size_], hidden_size_, &taps[(row * tap_layers.size() + tap) * hidden_size_]);
      }
    }
  };
  keep_taps(-1);
  for (size_t index = 0; index < layers_.size(); ++index) {
    const LayerWeights& layer = layers_[index];
    std::vector<float> x = h;
    normalize(x, *layer.input_norm, eps_);
    add(h, attention(layer, cache.layers[index], cache.length, x));
    x = h;
    normalize(x, *layer.post_norm, eps_);
    add(h, mlp(layer, x));
    keep_taps(static_cast<int64_t>(index));
  }
  cache.length += static_cast<int64_t>(tokens.size());
  return {std::move(h), std::move(taps)};
}

void Model::truncate(Cache& cache, int64_t length) const {
  cache.length = length;
  for (Cache::Layer& layer : cache.layers) {
    layer.keys.resize(static_cast<size_t>(length * num_kv_heads_ * head_size_));
    layer.values.resize(static_cast<size_t>(length * num_kv_heads_ * head_size_));
  }
}

int32_t Model::choose(const float* hidden) const {
  std::vector<float> x(hidden, hidden + hidden_size_);
  normalize(x, weight("model.norm.weight"), eps_);
  const std::vector<float> logits = linear(x, lm_head());
  return static_cast<int32_t>(std::max_element(logits.begin(), logits.begin() + num_real_ids_) - logits.begin());
}
