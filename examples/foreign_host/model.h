// The foreign engine's target: Qwen3 in float32, written to be read. It knows nothing of blockdraft.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "weights.h"

// Keys and values of one text: per layer [positions, kv heads * head size], keys normed and rotated.
struct Cache {
  struct Layer {
    std::vector<float> keys, values;
  };
  std::vector<Layer> layers;
  int64_t length = 0;  // positions
};

// What a pass over some tokens gives.
struct Pass {
  std::vector<float> hidden;  // [tokens, hidden size], before the final norm
  std::vector<float> taps;    // [tokens, layers asked for * hidden size]
};

class Model {
 public:
  // Reads config.json, tokenizer.json (for the number of ids only) and the weights. Throws std::exception.
  explicit Model(const std::filesystem::path& folder);

  // Runs tokens behind what the cache holds, and adds them to it. tap_layers: outputs of which layers are wanted; -1
  // means the embeddings.
  Pass forward(Cache& cache, std::span<const int32_t> tokens, std::span<const int32_t> tap_layers) const;
  // Forgets all positions from `length` on.
  void truncate(Cache& cache, int64_t length) const;
  // The most likely token after a row of Pass::hidden; of equals the one with the lowest id.
  int32_t choose(const float* hidden) const;

  const Matrix& embed_tokens() const { return weight("model.embed_tokens.weight"); }
  const Matrix& lm_head() const { return tied_ ? embed_tokens() : weight("lm_head.weight"); }
  int64_t num_layers() const { return num_layers_; }
  int64_t num_real_ids() const { return num_real_ids_; }
  const std::vector<int32_t>& stop_ids() const { return stop_ids_; }

 private:
  struct LayerWeights {
    const Matrix *input_norm, *q, *k, *v, *q_norm, *k_norm, *o, *post_norm, *gate, *up, *down;
  };

  const Matrix& weight(const std::string& name) const;
  std::vector<float> attention(const LayerWeights& layer, Cache::Layer& cache, int64_t first_position,
                               const std::vector<float>& x) const;
  std::vector<float> mlp(const LayerWeights& layer, const std::vector<float>& x) const;
  void rotate(float* head, int64_t position) const;

  std::map<std::string, Matrix> weights_;
  std::vector<LayerWeights> layers_;
  int64_t num_layers_ = 0, num_heads_ = 0, num_kv_heads_ = 0, head_size_ = 0, hidden_size_ = 0, num_real_ids_ = 0;
  float eps_ = 0, rope_theta_ = 0;
  bool tied_ = false;
  std::vector<int32_t> stop_ids_;
};
