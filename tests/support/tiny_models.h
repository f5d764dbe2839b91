// Small models with random weights, written as model folders.
#pragma once

#include <cstdint>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "support/safetensors_writer.h"

namespace blockdraft::test {

// The shape of a stack of Qwen3 layers.
struct TinyStack {
  int64_t layers = 4;
  int64_t hidden = 64;
  int64_t heads = 4;
  int64_t kv_heads = 2;
  int64_t head_dim = 16;
  int64_t inner = 96;
  bool bias = false;
};

struct TinyTarget {
  TinyStack stack;
  int64_t vocab = 160;
  int64_t max_positions = 1024;
  bool tied = false;
};

enum class TinyFamily { dflash, dflash2, dspark };

struct TinyDrafter {
  TinyFamily family = TinyFamily::dflash;
  TinyStack stack{.layers = 2};
  int64_t vocab = 160;
  int64_t target_layers = 4;
  std::vector<int32_t> taps = {2, 0, 3};
  int64_t block_size = 16;
  int32_t mask_id = 159;
  int64_t window = 0;  // 0: all layers see everything
  bool causal = false;
  int64_t rank = 16;           // of selector or Markov head; 0: no Markov head
  int64_t selector_top_k = 8;  // DFlash2
  std::string markov_head = "vanilla";
  bool confidence = false;  // a confidence head, of a DSpark with a Markov head
};

struct ModelFiles {
  nlohmann::json config;
  std::vector<TensorToWrite> tensors;

  TensorToWrite& tensor(const std::string& name);
  void remove(const std::string& name);
  void write(const std::filesystem::path& folder) const;  // which is made
};

// Weights are large enough that the target's text depends on all of its context and does not settle on one token.
ModelFiles tiny_target(const TinyTarget& shape, uint32_t seed);
// DFlash2: convolutions of two taps and a selector. DSpark: a Markov head.
ModelFiles tiny_drafter(const TinyDrafter& shape, uint32_t seed);

// BF16, normal with the given deviation around `mean`.
TensorToWrite random_tensor(std::mt19937& generator, const std::string& name, std::vector<int64_t> shape,
                            double deviation, double mean = 0.0);

}  // namespace blockdraft::test
