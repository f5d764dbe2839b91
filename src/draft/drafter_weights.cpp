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

Status load_vocabulary(WeightStore& store, const DrafterConfig& config, DrafterWeights& weights) {
  const TransformerConfig& transformer = config.transformer;
  if (store.has("embed_tokens.weight")) {
    BLOCKDRAFT_ASSIGN(weights.embed_tokens,
                      store.matrix("embed_tokens", transformer.vocab_size, transformer.hidden_size));
  }
  const bool reduced = config.draft_vocab_size < transformer.vocab_size;
  if (reduced || store.has("lm_head.weight")) {
    BLOCKDRAFT_ASSIGN(weights.lm_head, store.matrix("lm_head", config.draft_vocab_size, transformer.hidden_size));
  }
  if (reduced || store.has("d2t")) {
    BLOCKDRAFT_ASSIGN(const StoredTensor* d2t, store.raw("d2t"));
    const StoredTensor* t2d = nullptr;
    if (store.has("t2d")) {
      BLOCKDRAFT_ASSIGN(t2d, store.raw("t2d"));
    }
    BLOCKDRAFT_ASSIGN(weights.draft_to_target,
                      read_draft_vocabulary(*d2t, t2d, config.draft_vocab_size, transformer.vocab_size,
                                            store.checkpoint().folder().string()));
  }
  return {};
}

}  // namespace

Result<std::string> find_prefix(const Checkpoint& checkpoint) {
  static constexpr std::array<std::string_view, 3> kPrefixes = {"", "model.", "draft_model."};
  for (const std::string_view prefix : kPrefixes) {
    for (const char* name : {"fc.weight", "fc.weight_packed"}) {
      if (checkpoint.find(std::string(prefix) + name) != nullptr) return std::string(prefix);
    }
  }
  return make_error(Code::not_found, "{}: no tensor 'fc.weight', 'model.fc.weight' or 'draft_model.fc.weight'",
                    checkpoint.folder().string());
}

Result<DrafterWeights> load_drafter_weights(WeightStore& store, const DrafterConfig& config) {
  const TransformerConfig& transformer = config.transformer;
  const auto taps = static_cast<int64_t>(config.target_layer_ids.size());
  DrafterWeights weights;
  BLOCKDRAFT_ASSIGN(weights.fc, store.matrix("fc", transformer.hidden_size, taps * config.target_hidden_size));
  BLOCKDRAFT_ASSIGN(weights.hidden_norm, store.vector("hidden_norm.weight", transformer.hidden_size));
  for (int64_t index = 0; index < transformer.num_hidden_layers; ++index) {
    BLOCKDRAFT_ASSIGN(DecoderLayer layer, load_decoder_layer(store, transformer, fmt::format("layers.{}.", index)));
    weights.context_kv_proj.push_back(layer.qkv_proj[1]);
    weights.context_kv_proj.push_back(layer.qkv_proj[2]);
    weights.layers.push_back(layer);
  }
  BLOCKDRAFT_ASSIGN(weights.norm, store.vector("norm.weight", transformer.hidden_size));
  BLOCKDRAFT_TRY(load_vocabulary(store, config, weights));
  BLOCKDRAFT_TRY(refuse_unused(store, config));
  return weights;
}

}  // namespace blockdraft
