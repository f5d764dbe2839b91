#include "support/header_only.h"

#include <stdexcept>
#include <string_view>

#include "support/safetensors_writer.h"

namespace blockdraft {
namespace {

using nlohmann::json;

class TensorList {
 public:
  explicit TensorList(const json& config) : config_(config) {}

  void add(std::string name, std::vector<int64_t> shape) {
    list.push_back({std::move(name), "BF16", std::move(shape)});
  }
  void matrix(const std::string& module, int64_t out_features, int64_t in_features, bool bias = false) {
    add(module + ".weight", {out_features, in_features});
    if (bias) add(module + ".bias", {out_features});
  }

  // A key of the drafter, nested or not, or of the transformer.
  int64_t number(const char* key) const {
    for (const char* nested : {"dflash_config", "transformer_layer_config"}) {
      if (config_.contains(nested) && config_[nested].contains(key)) return config_[nested][key].get<int64_t>();
    }
    return config_.value(key, int64_t{0});
  }

  void layers(const std::string& prefix) {
    for (int64_t index = 0; index < number("num_hidden_layers"); ++index) {
      layer(prefix + "layers." + std::to_string(index) + ".");
    }
  }

  std::vector<HeaderTensor> list;

 private:
  void layer(const std::string& prefix) {
    const int64_t hidden = number("hidden_size");
    const int64_t inner = number("intermediate_size");
    const int64_t queries = number("num_attention_heads") * number("head_dim");
    const int64_t keys = number("num_key_value_heads") * number("head_dim");
    const bool bias = config_.value("attention_bias", false);
    add(prefix + "input_layernorm.weight", {hidden});
    add(prefix + "post_attention_layernorm.weight", {hidden});
    matrix(prefix + "self_attn.q_proj", queries, hidden, bias);
    matrix(prefix + "self_attn.k_proj", keys, hidden, bias);
    matrix(prefix + "self_attn.v_proj", keys, hidden, bias);
    matrix(prefix + "self_attn.o_proj", hidden, queries, bias);
    add(prefix + "self_attn.q_norm.weight", {number("head_dim")});
    add(prefix + "self_attn.k_norm.weight", {number("head_dim")});
    matrix(prefix + "mlp.gate_proj", inner, hidden);
    matrix(prefix + "mlp.up_proj", inner, hidden);
    matrix(prefix + "mlp.down_proj", hidden, inner);
    const int64_t taps = number("conv_kernel_size");
    if (taps == 0) return;
    for (const char* conv : {"attention_conv", "mlp_conv"}) {
      add(prefix + conv + ".base_kernel", {2, taps, hidden});
      matrix(prefix + conv + ".kernel_projection", 2 * taps * (hidden / number("conv_group_size")), hidden);
    }
  }

  const json& config_;
};

bool is_linear(std::string_view name) {
  return name == "fc.weight" || (name.ends_with("_proj.weight") && name.find("layers.") != name.npos);
}

int64_t size_of_type(const std::string& dtype) {
  if (dtype == "BF16") return 2;
  if (dtype == "F32") return 4;
  if (dtype == "U8" || dtype == "F8_E4M3") return 1;
  throw std::runtime_error("no size of " + dtype);
}

int64_t bytes_of(const HeaderTensor& tensor) {
  int64_t bytes = size_of_type(tensor.dtype);
  for (const int64_t extent : tensor.shape) bytes *= extent;
  return bytes;
}

// A matrix.
void store(HeaderFormat format, const HeaderTensor& weight, std::vector<HeaderTensor>& list) {
  const int64_t out = weight.shape[0];
  const int64_t in = weight.shape[1];
  const std::string& name = weight.name;
  const std::string module = name.substr(0, name.rfind('.'));
  const auto blocks = [](int64_t extent) { return (extent + 127) / 128; };
  switch (format) {
    case HeaderFormat::bf16:
      list.push_back(weight);
      return;
    case HeaderFormat::fp8_tensor:
      list.push_back({name, "F8_E4M3", {out, in}});
      list.push_back({name + "_scale", "F32", {}});
      break;
    case HeaderFormat::fp8_row:
      list.push_back({name, "F8_E4M3", {out, in}});
      list.push_back({name + "_scale", "BF16", {out, 1}});
      break;
    case HeaderFormat::fp8_block:
      list.push_back({name, "F8_E4M3", {out, in}});
      list.push_back({name + "_scale_inv", "F32", {blocks(out), blocks(in)}});
      break;
    case HeaderFormat::nvfp4_modelopt:
      list.push_back({name, "U8", {out, in / 2}});
      list.push_back({name + "_scale", "F8_E4M3", {out, in / 16}});
      list.push_back({name + "_scale_2", "F32", {}});
      break;
    case HeaderFormat::nvfp4_compressed_tensors:
      list.push_back({name + "_packed", "U8", {out, in / 2}});
      list.push_back({name + "_scale", "F8_E4M3", {out, in / 16}});
      list.push_back({name + "_global_scale", "F32", {1}});
      list.push_back({module + ".input_global_scale", "F32", {1}});
      return;
  }
  list.push_back({module + ".input_scale", "F32", {}});
}

}  // namespace

std::vector<HeaderTensor> drafter_tensors(const json& config) {
  TensorList tensors(config);
  const int64_t hidden = tensors.number("hidden_size");
  const int64_t vocab = tensors.number("vocab_size");
  const json& keys = config.contains("dflash_config") ? config["dflash_config"] : config;
  const auto taps = static_cast<int64_t>(keys.at("target_layer_ids").size());
  const bool muse = config.at("architectures")[0] == "MuseGlimmerAssistantModel";
  tensors.matrix(muse ? "encoder.fc" : "fc", hidden, taps * hidden);
  tensors.add(muse ? "encoder.output_norm_enc.weight" : "hidden_norm.weight", {hidden});
  tensors.layers("");
  tensors.add("norm.weight", {hidden});
  if (const int64_t rank = tensors.number("selector_rank"); rank > 0) {
    tensors.add("candidate_selector.predecessor_codebook", {vocab, rank});
    tensors.add("candidate_selector.successor_codebook", {vocab, rank});
    tensors.matrix("candidate_selector.hidden_projection", rank, hidden);
  }
  if (const int64_t rank = tensors.number("markov_rank"); rank > 0) {
    tensors.matrix("markov_head.markov_w1", vocab, rank);
    tensors.matrix("markov_head.markov_w2", vocab, rank);
    tensors.matrix("confidence_head.proj", 1, hidden + rank, true);
  }
  if (config.at("architectures")[0] == "Qwen3DSparkModel") {
    tensors.matrix("embed_tokens", vocab, hidden);
    tensors.matrix("lm_head", vocab, hidden);
  }
  return tensors.list;
}

std::vector<HeaderTensor> target_tensors(const json& config) {
  TensorList tensors(config);
  const int64_t hidden = tensors.number("hidden_size");
  tensors.matrix("model.embed_tokens", tensors.number("vocab_size"), hidden);
  tensors.layers("model.");
  tensors.add("model.norm.weight", {hidden});
  if (!config.value("tie_word_embeddings", false)) tensors.matrix("lm_head", tensors.number("vocab_size"), hidden);
  return tensors.list;
}

std::vector<HeaderTensor> stored_as(HeaderFormat format, const std::vector<HeaderTensor>& tensors) {
  std::vector<HeaderTensor> list;
  for (const HeaderTensor& tensor : tensors) {
    if (is_linear(tensor.name)) {
      store(format, tensor, list);
    } else {
      list.push_back(tensor);
    }
  }
  return list;
}

int64_t data_bytes(const std::vector<HeaderTensor>& tensors) {
  int64_t bytes = 0;
  for (const HeaderTensor& tensor : tensors) bytes += bytes_of(tensor);
  return bytes;
}

void write_header_only(const std::filesystem::path& folder, const json& config,
                       const std::vector<HeaderTensor>& tensors) {
  json header = json::object();
  int64_t begin = 0;
  for (const HeaderTensor& tensor : tensors) {
    const int64_t end = begin + bytes_of(tensor);
    header[tensor.name] = {{"dtype", tensor.dtype}, {"shape", tensor.shape}, {"data_offsets", {begin, end}}};
    begin = end;
  }
  std::filesystem::create_directories(folder);
  write_file(folder / "config.json", config.dump(1));
  write_file(folder / "model.safetensors", safetensors_from_header(header.dump()));
}

}  // namespace blockdraft
