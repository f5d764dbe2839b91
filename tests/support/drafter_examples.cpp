#include "support/drafter_examples.h"

#include <gtest/gtest.h>

namespace blockdraft {
namespace {

const std::filesystem::path kSource = BLOCKDRAFT_SOURCE_DIR;

}  // namespace

Json qwen3_4b() {
  return Json::parse(R"({
    "architectures": ["DFlashDraftModel"], "attention_bias": false, "attention_dropout": 0.0,
    "auto_map": {"AutoModel": "dflash.DFlashDraftModel"}, "block_size": 16, "bos_token_id": 151643,
    "dflash_config": {"mask_token_id": 151669, "target_layer_ids": [1, 9, 17, 25, 33]}, "dtype": "bfloat16",
    "eos_token_id": 151645, "head_dim": 128, "hidden_act": "silu", "hidden_size": 2560, "initializer_range": 0.02,
    "intermediate_size": 9728,
    "layer_types": ["full_attention", "full_attention", "full_attention", "full_attention", "full_attention"],
    "max_position_embeddings": 40960, "max_window_layers": 5, "model_type": "qwen3", "num_attention_heads": 32,
    "num_hidden_layers": 5, "num_key_value_heads": 8, "num_target_layers": 36, "rms_norm_eps": 1e-06,
    "rope_scaling": null, "rope_theta": 1000000, "sliding_window": null, "tie_word_embeddings": false,
    "use_cache": true, "use_sliding_window": false, "vocab_size": 151936})");
}

Json qwen36_27b() {
  return Json::parse(R"({
    "architectures": ["DFlashDraftModel"], "attention_bias": false, "block_size": 16, "bos_token_id": null,
    "dflash_config": {"mask_token_id": 248070, "target_layer_ids": [1, 16, 31, 46, 61]}, "dtype": "bfloat16",
    "eos_token_id": 248044, "head_dim": 128, "hidden_size": 5120, "intermediate_size": 17408,
    "layer_types": ["sliding_attention", "sliding_attention", "sliding_attention", "sliding_attention",
                    "full_attention"],
    "max_position_embeddings": 262144, "max_window_layers": 5, "model_type": "qwen3", "num_attention_heads": 32,
    "num_hidden_layers": 5, "num_key_value_heads": 8, "num_target_layers": 64, "pad_token_id": 248044,
    "rms_norm_eps": 1e-06, "sliding_window": 2048, "tie_word_embeddings": false, "transformers_version": "5.5.3",
    "use_sliding_window": true, "vocab_size": 248320, "rope_theta": 10000000, "rope_scaling": null})");
}

Json qwen38_27b_dflash2() {
  return Json::parse(R"({
    "architectures": ["DFlash2DraftModel"], "attention_bias": false, "attention_dropout": 0.0, "bos_token_id": null,
    "is_causal": false,
    "dflash_config": {"block_size": 8, "conv_group_size": 16, "conv_kernel_size": 2, "mask_token_id": 248070,
                      "selector_rank": 256, "selector_top_k": 16, "target_layer_ids": [5, 19, 33, 47, 61]},
    "dtype": "bfloat16", "eos_token_id": 248044, "head_dim": 128, "hidden_act": "silu", "hidden_size": 5120,
    "initializer_range": 0.02, "intermediate_size": 17408,
    "layer_types": ["sliding_attention", "sliding_attention", "sliding_attention", "sliding_attention",
                    "sliding_attention"],
    "max_position_embeddings": 262144, "max_window_layers": 5, "model_type": "qwen3", "num_attention_heads": 32,
    "num_hidden_layers": 5, "num_key_value_heads": 8, "num_target_layers": 64, "pad_token_id": 248044,
    "rms_norm_eps": 1e-06, "rope_parameters": {"rope_theta": 10000000, "rope_type": "default"},
    "sliding_window": 2048, "tie_word_embeddings": false, "transformers_version": "5.15.0", "use_cache": true,
    "use_sliding_window": true, "vocab_size": 248320})");
}

Json muse_30b_dflash2() {
  return patched(qwen38_27b_dflash2(), R"({
    "bos_token_id": 200000, "eos_token_id": 200001, "pad_token_id": 200018,
    "dflash_config": {"block_size": 16, "final_logit_softcapping": 20.0, "mask_token_id": 201818,
                      "output_multiplier": 0.19611613513818404, "target_layer_ids": [1, 13, 25, 37, 49]},
    "hidden_size": 6656, "intermediate_size": 19968, "max_position_embeddings": 131072, "num_target_layers": 52,
    "rms_norm_eps": 1e-05, "rope_parameters": {"rope_theta": 500000.0, "rope_type": "default"}, "use_cache": false,
    "vocab_size": 202048})");
}

Json qwen3_4b_dspark() {
  return patched(qwen3_4b(), R"({
    "architectures": ["DSparkDraftModel"], "auto_map": {"AutoModel": "dspark.DSparkDraftModel"}, "block_size": 7,
    "dflash_config": {"attention_mode": "gqa", "mask_token_id": 151669, "target_layer_ids": [1, 9, 17, 25, 33],
                      "projector_type": "dspark", "markov_rank": 256, "markov_head_type": "vanilla",
                      "confidence_head_alpha": 1.0, "enable_confidence_head": true,
                      "confidence_head_with_markov": true}})");
}

// Leftovers of the target: stop ids, a window, max_window_layers of 36 layers.
Json qwen3_4b_deepspec() {
  return Json::parse(R"({
    "architectures": ["Qwen3DSparkModel"], "attention_bias": false, "attention_dropout": 0.0, "block_size": 7,
    "bos_token_id": 151643, "confidence_head_with_markov": true, "dtype": "bfloat16", "enable_confidence_head": true,
    "eos_token_id": [151645, 151643], "head_dim": 128, "hidden_act": "silu", "hidden_size": 2560,
    "initializer_range": 0.02, "intermediate_size": 9728,
    "layer_types": ["full_attention", "full_attention", "full_attention", "full_attention", "full_attention"],
    "markov_head_type": "vanilla", "markov_rank": 256, "mask_token_id": 151669, "max_position_embeddings": 40960,
    "max_window_layers": 36, "model_type": "qwen3", "num_anchors": 512, "num_attention_heads": 32,
    "num_hidden_layers": 5, "num_key_value_heads": 8, "num_target_layers": 36, "rms_norm_eps": 1e-06,
    "rope_scaling": null, "rope_theta": 1000000, "sliding_window": 4096, "target_layer_ids": [1, 9, 17, 25, 33],
    "tie_word_embeddings": false, "use_cache": true, "use_sliding_window": false, "vocab_size": 151936})");
}

Json qwen3_4b_speculators() {
  return Json::parse(R"({
    "architectures": ["DFlashSpeculator"], "speculators_model_type": "dflash", "speculators_version": "0.5.0",
    "block_size": 8, "draft_vocab_size": 32000, "mask_token_id": 151669, "num_anchors": 256,
    "aux_hidden_state_layer_ids": [2, 10, 18, 26, 34], "target_hidden_size": null, "sample_from_anchor": false,
    "sliding_window_non_causal": false, "dtype": "bfloat16",
    "transformer_layer_config": {
      "attention_bias": false, "attention_dropout": 0.0, "head_dim": 128, "hidden_act": "silu", "hidden_size": 2560,
      "initializer_range": 0.02, "intermediate_size": 9728,
      "layer_types": ["sliding_attention", "full_attention", "full_attention"], "max_position_embeddings": 40960,
      "max_window_layers": 28, "model_type": "qwen3", "num_attention_heads": 32, "num_hidden_layers": 3,
      "num_key_value_heads": 8, "rms_norm_eps": 1e-06, "rope_scaling": null, "rope_theta": 1000000,
      "sliding_window": 2048, "use_cache": true, "use_sliding_window": true, "vocab_size": 151936},
    "speculators_config": {
      "algorithm": "dflash", "default_proposal_method": "greedy",
      "proposal_methods": [{"proposal_type": "greedy", "speculative_tokens": 7}],
      "verifier": {"name_or_path": "Qwen/Qwen3-4B", "architectures": ["Qwen3ForCausalLM"]}}})");
}

Json speculators_dspark() {
  return patched(qwen3_4b_speculators(), R"({
    "architectures": ["DSparkSpeculator"], "speculators_model_type": "dspark", "sample_from_anchor": true,
    "sliding_window_non_causal": null, "markov_rank": 64, "markov_head_type": "gated", "enable_confidence_head": true,
    "confidence_head_with_markov": false, "speculators_config": {"algorithm": "dspark"}})");
}

Json speculators_dflash2() {
  return patched(qwen3_4b_speculators(), R"({
    "architectures": ["DFlash2DraftModel"], "speculators_model_type": "dflash2", "sliding_window_non_causal": null,
    "conv_kernel_size": 2, "conv_group_size": 16, "selector_rank": 256, "selector_top_k": 16,
    "speculators_config": {"algorithm": "dflash2"}})");
}

Json muse_assistant() {
  return Json::parse(R"({
    "architectures": ["MuseGlimmerAssistantModel"], "model_type": "muse_glimmer_assistant", "attention_dropout": 0,
    "block_size": 16, "bos_token_id": 200000, "dtype": "bfloat16", "eos_token_id": 200001, "head_dim": 128,
    "hidden_act": "silu", "hidden_size": 6656, "intermediate_size": 19968,
    "layer_types": ["sliding_attention", "sliding_attention", "sliding_attention", "sliding_attention",
                    "sliding_attention"],
    "mask_token_id": 201818, "max_position_embeddings": 131072, "num_attention_heads": 32, "num_hidden_layers": 5,
    "num_key_value_heads": 8, "pad_token_id": 200018, "rms_norm_eps": 1e-05,
    "rope_parameters": {"rope_theta": 500000.0, "rope_type": "default"}, "sliding_window": 2048,
    "target_layer_ids": [1, 13, 25, 37, 49], "transformers_version": "5.15.0.dev0"})");
}

Json qwen3_8b() { return patched(qwen3_4b(), R"({"hidden_size": 4096, "intermediate_size": 12288})"); }

Json qwen35_4b() {
  return patched(qwen3_4b(), R"({
    "block_size": null, "hidden_size": 2560, "intermediate_size": 9216, "num_hidden_layers": 6,
    "num_target_layers": 32, "rope_theta": null, "rope_parameters": {"rope_theta": 10000000, "rope_type": "default"},
    "layer_types": ["sliding_attention", "sliding_attention", "sliding_attention", "sliding_attention",
                    "sliding_attention", "full_attention"],
    "sliding_window": 4096, "use_sliding_window": true, "vocab_size": 248320,
    "dflash_config": {"block_size": 16, "mask_token_id": 248077, "target_layer_ids": [1, 5, 9, 13, 17, 21, 25, 29]}})");
}

Json qwen35_35b_a3b() {
  return patched(qwen3_4b(), R"({
    "hidden_size": 2048, "intermediate_size": 6144, "num_key_value_heads": 4, "num_hidden_layers": 8,
    "layer_types": null, "num_target_layers": 40, "rope_theta": 10000000, "vocab_size": 248320,
    "dflash_config": {"mask_token_id": 248070, "target_layer_ids": [1, 10, 19, 28, 37]}})");
}

Json gpt_oss_20b() {
  return patched(qwen3_4b(), R"({
    "hidden_size": 2880, "intermediate_size": 7680, "num_attention_heads": 64, "num_key_value_heads": 8,
    "head_dim": 64, "num_hidden_layers": 8, "layer_types": null, "block_size": 8, "num_target_layers": 24,
    "dflash_config": {"mask_token_id": 200000, "target_layer_ids": [1, 6, 11, 16, 21]}, "rope_theta": 150000,
    "rms_norm_eps": 1e-05, "vocab_size": 201088, "attention_bias": true, "max_position_embeddings": 131072,
    "rope_scaling": {"rope_type": "yarn", "factor": 32, "original_max_position_embeddings": 4096}})");
}

Json gemma4_31b() {
  return patched(qwen3_4b(), R"({
    "hidden_size": 5376, "intermediate_size": 10752, "num_attention_heads": 64, "num_target_layers": 60,
    "vocab_size": 262144, "final_logit_softcapping": 30.0, "sliding_window": 2048, "use_sliding_window": true,
    "layer_types": ["sliding_attention", "sliding_attention", "sliding_attention", "sliding_attention",
                    "full_attention"],
    "dflash_config": {"mask_token_id": 4, "target_layer_ids": [1, 12, 23, 35, 46, 57]}})");
}

Json mimo() {
  return Json::parse(R"({
    "architectures": ["DFlashDraftModel"], "model_type": "qwen3", "auto_map": {"AutoModel": "dflash.DFlashDraftModel"},
    "hidden_size": 6144, "intermediate_size": 16384, "num_hidden_layers": 5, "num_attention_heads": 128,
    "num_key_value_heads": 8, "head_dim": 128, "v_head_dim": 128, "partial_rotary_factor": 0.5, "block_size": 8,
    "dflash_config": {"target_layer_ids": [0, 15, 31, 47, 69], "mask_token_id": 151669, "num_anchors": 4096,
                      "block_size": 8, "loss_decay_gamma": 7.0, "use_swa": true, "swa_window_size": 1024,
                      "backbone_rotary_base": 5000000, "attention_value_scale": 0.612, "attention_sink_bias": true},
    "num_target_layers": 70, "vocab_size": 152064, "max_position_embeddings": 262144, "rope_theta": 10000,
    "sliding_window": 1024, "rms_norm_eps": 1e-05, "torch_dtype": "bfloat16", "hidden_act": "silu",
    "attention_bias": false, "attention_dropout": 0.0, "bos_token_id": 151643, "eos_token_id": 151645,
    "tie_word_embeddings": false, "use_cache": true})");
}

Json patched(Json document, const char* patch) {
  document.merge_patch(Json::parse(patch));
  return document;
}

Result<DrafterConfig> read(const char* patch) { return read_drafter_config(patched(qwen3_4b(), patch), "config.json"); }

DrafterConfig value_of(Result<DrafterConfig> config) {
  EXPECT_TRUE(config.ok()) << (config ? "" : config.error().message);
  return config ? *config : DrafterConfig();
}

DrafterConfig accepted(const Json& document, const char* patch) {
  return value_of(read_drafter_config(patched(document, patch), "config.json"));
}

DrafterConfig read_ok(const char* patch) { return value_of(read(patch)); }

DrafterConfig read_folder(const std::string& path) { return value_of(read_drafter_config(kSource / path)); }

DrafterConfig read_golden(const std::string& name) { return read_folder("tests/golden/" + name); }

void expect_refused(const Json& document, const char* patch, Code code, const std::string& message) {
  expect_refusal(read_drafter_config(patched(document, patch), "config.json"), {"", patch, code, message});
}

std::vector<int32_t> windows(const DrafterConfig& config) {
  std::vector<int32_t> list;
  for (const DrafterLayerConfig& layer : config.layers) list.push_back(layer.window);
  return list;
}

std::vector<bool> causality(const DrafterConfig& config) {
  std::vector<bool> list;
  for (const DrafterLayerConfig& layer : config.layers) list.push_back(layer.causal);
  return list;
}

std::vector<bool> slides(const DrafterConfig& config) {
  std::vector<bool> list;
  for (const DrafterLayerConfig& layer : config.layers) list.push_back(layer.type == LayerType::sliding_attention);
  return list;
}

}  // namespace blockdraft
