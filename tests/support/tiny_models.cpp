#include "support/tiny_models.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace blockdraft::test {
namespace {

constexpr double kGain = 2.0;
constexpr int64_t kConvTaps = 2;

class Tensors {
 public:
  explicit Tensors(uint32_t seed) : generator_(seed) {}

  void norm(const std::string& name, int64_t dim) {
    list.push_back(random_tensor(generator_, name + ".weight", {dim}, 0.2, 1.0));
  }
  void matrix(const std::string& name, int64_t out_features, int64_t in_features, bool bias = false,
              double gain = kGain) {
    const double deviation = gain / std::sqrt(static_cast<double>(in_features));
    list.push_back(random_tensor(generator_, name + ".weight", {out_features, in_features}, deviation));
    if (bias) list.push_back(random_tensor(generator_, name + ".bias", {out_features}, 0.3));
  }
  void plain(const std::string& name, std::vector<int64_t> shape, double deviation) {
    list.push_back(random_tensor(generator_, name, std::move(shape), deviation));
  }
  void table(const std::string& name, int64_t rows, int64_t columns) {
    list.push_back(random_tensor(generator_, name + ".weight", {rows, columns}, 1.0));
  }
  void layers(const TinyStack& stack, const std::string& prefix) {
    for (int64_t index = 0; index < stack.layers; ++index) {
      layer(stack, prefix + "layers." + std::to_string(index) + ".");
    }
  }

  std::vector<TensorToWrite> list;

 private:
  void layer(const TinyStack& stack, const std::string& prefix) {
    const int64_t q = stack.heads * stack.head_dim;
    const int64_t kv = stack.kv_heads * stack.head_dim;
    norm(prefix + "input_layernorm", stack.hidden);
    matrix(prefix + "self_attn.q_proj", q, stack.hidden, stack.bias);
    matrix(prefix + "self_attn.k_proj", kv, stack.hidden, stack.bias);
    matrix(prefix + "self_attn.v_proj", kv, stack.hidden, stack.bias);
    matrix(prefix + "self_attn.o_proj", stack.hidden, q, stack.bias);
    norm(prefix + "self_attn.q_norm", stack.head_dim);
    norm(prefix + "self_attn.k_norm", stack.head_dim);
    norm(prefix + "post_attention_layernorm", stack.hidden);
    matrix(prefix + "mlp.gate_proj", stack.inner, stack.hidden);
    matrix(prefix + "mlp.up_proj", stack.inner, stack.hidden);
    matrix(prefix + "mlp.down_proj", stack.hidden, stack.inner);
  }

  std::mt19937 generator_;
};

void add_convolutions(Tensors& tensors, const TinyStack& stack, int64_t group_size) {
  for (int64_t layer = 0; layer < stack.layers; ++layer) {
    for (const char* conv : {".attention_conv", ".mlp_conv"}) {
      const std::string name = "layers." + std::to_string(layer) + conv;
      tensors.plain(name + ".base_kernel", {2, kConvTaps, stack.hidden}, 0.5);
      tensors.matrix(name + ".kernel_projection", 2 * kConvTaps * stack.hidden / group_size, stack.hidden, false, 0.3);
    }
  }
}

void add_selector(ModelFiles& files, Tensors& tensors, const TinyDrafter& shape) {
  const int64_t group_size = shape.stack.hidden / 4;
  files.config["architectures"] = {"DFlash2DraftModel"};
  files.config["is_causal"] = shape.causal;
  files.config["dflash_config"].update({{"conv_kernel_size", kConvTaps},
                                        {"conv_group_size", group_size},
                                        {"selector_rank", shape.rank},
                                        {"selector_top_k", shape.selector_top_k}});
  add_convolutions(tensors, shape.stack, group_size);
  tensors.plain("candidate_selector.predecessor_codebook", {shape.vocab, shape.rank}, 1.0);
  tensors.plain("candidate_selector.successor_codebook", {shape.vocab, shape.rank}, 1.0);
  tensors.matrix("candidate_selector.hidden_projection", shape.rank, shape.stack.hidden, false, 0.5);
}

void add_markov_head(ModelFiles& files, Tensors& tensors, const TinyDrafter& shape) {
  files.config["architectures"] = {"DSparkDraftModel"};
  files.config["dflash_config"].update({{"projector_type", "dspark"},
                                        {"markov_rank", shape.rank},
                                        {"markov_head_type", shape.markov_head},
                                        {"enable_confidence_head", shape.confidence},
                                        {"confidence_head_with_markov", shape.confidence}});
  if (shape.rank == 0) return;
  const int64_t hidden = shape.stack.hidden;
  tensors.table("markov_head.markov_w1", shape.vocab, shape.rank);
  tensors.matrix("markov_head.markov_w2", shape.vocab, shape.rank);
  if (shape.markov_head == "gated") tensors.matrix("markov_head.gate_proj", shape.rank, hidden + shape.rank, true);
  if (shape.markov_head == "rnn") {
    tensors.matrix("markov_head.joint_proj", 3 * shape.rank, 2 * shape.rank + hidden, true);
  }
  if (shape.confidence) tensors.matrix("confidence_head.proj", 1, hidden + shape.rank, true);
}

nlohmann::json stack_config(const TinyStack& stack) {
  return {{"hidden_size", stack.hidden},
          {"intermediate_size", stack.inner},
          {"num_hidden_layers", stack.layers},
          {"num_attention_heads", stack.heads},
          {"num_key_value_heads", stack.kv_heads},
          {"head_dim", stack.head_dim},
          {"rms_norm_eps", 1e-6},
          {"rope_theta", 10000.0},
          {"hidden_act", "silu"},
          {"attention_bias", stack.bias}};
}

}  // namespace

TensorToWrite random_tensor(std::mt19937& generator, const std::string& name, std::vector<int64_t> shape,
                            double deviation, double mean) {
  std::normal_distribution<double> normal(mean, deviation);
  int64_t count = 1;
  for (const int64_t dim : shape) count *= dim;
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(static_cast<float>(normal(generator)));
  return bf16_tensor(name, std::move(shape), values);
}

TensorToWrite& ModelFiles::tensor(const std::string& name) {
  const auto found = std::ranges::find(tensors, name, &TensorToWrite::name);
  if (found == tensors.end()) throw std::runtime_error("no tensor " + name);
  return *found;
}

void ModelFiles::remove(const std::string& name) {
  if (std::erase_if(tensors, [&](const TensorToWrite& tensor) { return tensor.name == name; }) != 1) {
    throw std::runtime_error("no tensor " + name);
  }
}

void ModelFiles::write(const std::filesystem::path& folder) const {
  std::filesystem::create_directories(folder);
  write_file(folder / "config.json", config.dump(1));
  write_safetensors(folder / "model.safetensors", tensors);
}

ModelFiles tiny_target(const TinyTarget& shape, uint32_t seed) {
  ModelFiles files;
  files.config = stack_config(shape.stack);
  files.config["architectures"] = {"Qwen3ForCausalLM"};
  files.config["vocab_size"] = shape.vocab;
  files.config["max_position_embeddings"] = shape.max_positions;
  files.config["tie_word_embeddings"] = shape.tied;
  Tensors tensors(seed);
  tensors.table("model.embed_tokens", shape.vocab, shape.stack.hidden);
  tensors.layers(shape.stack, "model.");
  tensors.norm("model.norm", shape.stack.hidden);
  if (!shape.tied) tensors.matrix("lm_head", shape.vocab, shape.stack.hidden);
  files.tensors = std::move(tensors.list);
  return files;
}

ModelFiles tiny_drafter(const TinyDrafter& shape, uint32_t seed) {
  ModelFiles files;
  files.config = stack_config(shape.stack);
  files.config["architectures"] = {"DFlashDraftModel"};
  files.config["model_type"] = "qwen3";
  files.config["vocab_size"] = shape.vocab;
  files.config["max_position_embeddings"] = 1024;
  files.config["num_target_layers"] = shape.target_layers;
  files.config["block_size"] = shape.block_size;
  files.config["dflash_config"] = {
      {"mask_token_id", shape.mask_id}, {"target_layer_ids", shape.taps}, {"causal", shape.causal}};
  if (shape.window > 0) {
    files.config["sliding_window"] = shape.window;
    files.config["layer_types"] =
        std::vector<std::string>(static_cast<size_t>(shape.stack.layers), "sliding_attention");
  }
  Tensors tensors(seed);
  tensors.matrix("fc", shape.stack.hidden, static_cast<int64_t>(shape.taps.size()) * shape.stack.hidden);
  tensors.norm("hidden_norm", shape.stack.hidden);
  tensors.layers(shape.stack, "");
  tensors.norm("norm", shape.stack.hidden);
  if (shape.family == TinyFamily::dflash2) add_selector(files, tensors, shape);
  if (shape.family == TinyFamily::dspark) add_markov_head(files, tensors, shape);
  files.tensors = std::move(tensors.list);
  return files;
}

}  // namespace blockdraft::test
