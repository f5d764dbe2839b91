#include "draft/drafter_weights.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "draft/draft_vocabulary.h"

namespace blockdraft {
namespace {

bool may_be_ignored(std::string_view name) {
  return name.ends_with(".rotary_emb.inv_freq") || name == "t2d" || name.starts_with("verifier_lm_head.") ||
         name.starts_with("verifier_norm.");
}

Status refuse_unused(const WeightStore& store, const DrafterConfig& config) {
  std::vector<std::string> unused = store.unused();
  std::erase_if(unused, may_be_ignored);
  if (unused.empty()) return {};
  return make_error(Code::unsupported, "{}: tensor '{}' is not part of a {} drafter ({} such tensors)",
                    store.checkpoint().file_of(unused.front()), unused.front(), config.architecture, unused.size());
}

// What makes context rows out of taps. Muse Glimmer assistants name it otherwise (spec 3.4).
struct ContextNames {
  const char* fc;
  const char* hidden_norm;
};
ContextNames context_names(const WeightStore& store) {
  if (store.has_matrix("encoder.fc")) return {"encoder.fc", "encoder.output_norm_enc.weight"};
  return {"fc", "hidden_norm.weight"};
}

// Some files call the first layer by another name (spec 3.4).
std::string layer_prefix(const WeightStore& store, int64_t index) {
  const bool mid = index == 0 && store.has("midlayer.input_layernorm.weight");
  return mid ? "midlayer." : fmt::format("layers.{}.", index);
}

Status load_vocabulary(WeightStore& store, const DrafterConfig& config, DrafterWeights& weights) {
  const TransformerConfig& transformer = config.transformer;
  if (store.has_matrix("embed_tokens")) {
    BLOCKDRAFT_ASSIGN(weights.embed_tokens,
                      store.matrix("embed_tokens", transformer.vocab_size, transformer.hidden_size));
  }
  const bool reduced = config.draft_vocab_size < transformer.vocab_size;
  if (reduced || store.has_matrix("lm_head")) {
    BLOCKDRAFT_ASSIGN(const WeightView head, store.matrix("lm_head", config.draft_vocab_size, transformer.hidden_size));
    BLOCKDRAFT_ASSIGN(weights.lm_head, store.packed(head));
  }
  if (reduced || store.has("d2t")) {
    BLOCKDRAFT_ASSIGN(const StoredTensor* d2t, store.raw("d2t"));
    const StoredTensor* t2d = nullptr;
    if (store.has("t2d")) {
      BLOCKDRAFT_ASSIGN(t2d, store.raw("t2d"));
    }
    BLOCKDRAFT_ASSIGN(weights.draft_to_target,
                      read_draft_vocabulary(*d2t, t2d, config.draft_vocab_size, transformer.vocab_size,
                                            store.checkpoint().folder().string(), store.reads_values()));
  }
  return {};
}

Result<BlockConvolution> load_convolution(WeightStore& store, const DrafterConfig& config, const std::string& name) {
  const int64_t hidden = config.transformer.hidden_size;
  const int64_t taps = config.dflash2.conv_kernel_size;
  const int64_t groups = hidden / config.dflash2.conv_group_size;
  BlockConvolution conv{.group_size = config.dflash2.conv_group_size};
  BLOCKDRAFT_ASSIGN(const ConstTensorView kernel, store.tensor(name + ".base_kernel", Shape{2, taps, hidden}));
  conv.base_kernel = {kernel.data, kernel.dtype, Shape{2 * taps, hidden}, hidden};
  BLOCKDRAFT_ASSIGN(conv.kernel_projection, store.matrix(name + ".kernel_projection", 2 * taps * groups, hidden));
  return conv;
}

Result<BlockLayer> load_layer(WeightStore& store, const DrafterConfig& config, const std::string& prefix) {
  BlockLayer layer{.has_convolutions = config.family == DrafterFamily::dflash2 && config.dflash2.conv_kernel_size > 0};
  BLOCKDRAFT_ASSIGN(layer.decoder, load_decoder_layer(store, config.transformer, prefix));
  if (layer.has_convolutions) {
    BLOCKDRAFT_ASSIGN(layer.attention_conv, load_convolution(store, config, prefix + "attention_conv"));
    BLOCKDRAFT_ASSIGN(layer.mlp_conv, load_convolution(store, config, prefix + "mlp_conv"));
  }
  return layer;
}

// The codebooks are parameters without a module: their names end without ".weight", in most files.
Result<WeightView> load_codebook(WeightStore& store, const DrafterConfig& config, const std::string& name) {
  const int64_t vocab = config.transformer.vocab_size;
  return store.has(name) ? store.parameter(name, vocab, config.dflash2.selector_rank)
                         : store.matrix(name, vocab, config.dflash2.selector_rank);
}

Status load_selector(WeightStore& store, const DrafterConfig& config, SelectorWeights& selector) {
  BLOCKDRAFT_ASSIGN(selector.predecessor_codebook,
                    load_codebook(store, config, "candidate_selector.predecessor_codebook"));
  BLOCKDRAFT_ASSIGN(selector.successor_codebook, load_codebook(store, config, "candidate_selector.successor_codebook"));
  BLOCKDRAFT_ASSIGN(selector.hidden_projection,
                    store.matrix("candidate_selector.hidden_projection", config.dflash2.selector_rank,
                                 config.transformer.hidden_size));
  return {};
}

// Older SpecForge files keep the two heads in a container (spec 3.4).
std::string head_name(const WeightStore& store, const std::string& head, std::string_view matrix) {
  const std::string contained = "logit_head." + head;
  return store.has_matrix(fmt::format("{}.{}", contained, matrix)) ? contained : head;
}

Status load_markov(WeightStore& store, const DrafterConfig& config, MarkovWeights& markov) {
  const DsparkConfig& dspark = config.dspark;
  const int64_t rank = dspark.markov_rank;
  const int64_t hidden = config.transformer.hidden_size;
  const std::string head = head_name(store, "markov_head", "markov_w1");
  if (rank > 0) {
    BLOCKDRAFT_ASSIGN(markov.markov_w1, store.matrix(head + ".markov_w1", config.transformer.vocab_size, rank));
    BLOCKDRAFT_ASSIGN(markov.markov_w2, store.matrix(head + ".markov_w2", config.draft_vocab_size, rank));
  }
  if (rank > 0 && dspark.markov_head_type == MarkovHeadType::gated) {
    BLOCKDRAFT_ASSIGN(markov.gate_proj, store.matrix(head + ".gate_proj", rank, hidden + rank, true));
  }
  if (rank > 0 && dspark.markov_head_type == MarkovHeadType::rnn) {
    BLOCKDRAFT_ASSIGN(markov.joint_proj, store.matrix(head + ".joint_proj", 3 * rank, 2 * rank + hidden, true));
  }
  if (dspark.enable_confidence_head) {
    const int64_t width = hidden + (dspark.confidence_head_with_markov ? rank : 0);
    const std::string proj = head_name(store, "confidence_head", "proj") + ".proj";
    BLOCKDRAFT_ASSIGN(markov.confidence, store.matrix(proj, 1, width, true));
  }
  return {};
}

}  // namespace

Result<std::string> find_prefix(const Checkpoint& checkpoint) {
  if (checkpoint.is_random()) return std::string();
  static constexpr std::array<std::string_view, 3> kPrefixes = {"", "model.", "draft_model."};
  for (const std::string_view prefix : kPrefixes) {
    for (const char* name : {"fc.weight", "encoder.fc.weight"}) {
      if (has_weight(checkpoint, std::string(prefix) + name)) return std::string(prefix);
    }
  }
  return make_error(Code::not_found,
                    "{}: no tensor 'fc.weight', 'encoder.fc.weight', 'model.fc.weight' or 'draft_model.fc.weight'",
                    checkpoint.folder().string());
}

Result<DrafterWeights> load_drafter_weights(WeightStore& store, const DrafterConfig& config) {
  const TransformerConfig& transformer = config.transformer;
  const auto taps = static_cast<int64_t>(config.target_layer_ids.size());
  DrafterWeights weights;
  const ContextNames names = context_names(store);
  BLOCKDRAFT_ASSIGN(weights.fc, store.matrix(names.fc, transformer.hidden_size, taps * config.target_hidden_size));
  BLOCKDRAFT_ASSIGN(weights.hidden_norm, store.vector(names.hidden_norm, transformer.hidden_size));
  for (int64_t index = 0; index < transformer.num_hidden_layers; ++index) {
    BLOCKDRAFT_ASSIGN(BlockLayer layer, load_layer(store, config, layer_prefix(store, index)));
    weights.context_kv_proj.push_back(layer.decoder.qkv_proj[1]);
    weights.context_kv_proj.push_back(layer.decoder.qkv_proj[2]);
    weights.layers.push_back(layer);
  }
  BLOCKDRAFT_ASSIGN(weights.norm, store.vector("norm.weight", transformer.hidden_size));
  if (config.family == DrafterFamily::dflash2) BLOCKDRAFT_TRY(load_selector(store, config, weights.selector));
  if (config.family == DrafterFamily::dspark) BLOCKDRAFT_TRY(load_markov(store, config, weights.markov));
  BLOCKDRAFT_TRY(load_vocabulary(store, config, weights));
  BLOCKDRAFT_TRY(refuse_unused(store, config));
  return weights;
}

}  // namespace blockdraft
