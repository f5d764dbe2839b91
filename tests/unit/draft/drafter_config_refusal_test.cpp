#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "draft/drafter_config.h"
#include "support/drafter_examples.h"
#include "support/expect_error.h"

namespace blockdraft {

TEST_P(DrafterRefusal, NamesKeyFoundAndExpected) { expect_refusal(read(GetParam().patch), GetParam()); }

namespace {

Refusal other_kind(const char* name, const char* patch, const std::string& found, const std::string& kind) {
  return {name, patch, Code::unsupported,
          "key " + found + ", expected a DFlash, DFlash2 or DSpark drafter; this is " + kind};
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, DrafterRefusal,
    testing::Values(
        other_kind("gemma4", R"({"architectures": ["Gemma4DSparkModel"]})",
                   R"('architectures' is ["Gemma4DSparkModel"])", "the Gemma 4 variant of DSpark"),
        other_kind("lfm2", R"({"architectures": ["Lfm2DSparkDraftModel"]})",
                   R"('architectures' is ["Lfm2DSparkDraftModel"])", "the LFM2 variant of DSpark"),
        other_kind("k3", R"({"architectures": ["K3DSparkModel"]})", R"('architectures' is ["K3DSparkModel"])",
                   "the Kimi K3 variant of DSpark"),
        other_kind("domino", R"({"architectures": ["DominoDraftModel"]})", R"('architectures' is ["DominoDraftModel"])",
                   "a Domino drafter"),
        other_kind("laguna", R"({"architectures": ["DFlashLagunaForCausalLM"]})",
                   R"('architectures' is ["DFlashLagunaForCausalLM"])", "the Laguna variant of DFlash"),
        other_kind("target", R"({"architectures": ["Qwen3ForCausalLM"]})", R"('architectures' is ["Qwen3ForCausalLM"])",
                   "no architecture of a known drafter"),
        other_kind("empty", R"({"architectures": []})", "'architectures' is []", "no architecture of a known drafter"),
        // Exports of Domino carry DFlash's architecture, so the projector is looked at first.
        other_kind("domino_projector", R"({"dflash_config": {"projector_type": "domino", "shift_label": true}})",
                   R"('dflash_config.projector_type' is "domino")", "a Domino drafter"),
        other_kind("other_projector", R"({"projector_type": "mlp"})", R"('projector_type' is "mlp")",
                   "a projector type that is not known"),
        Refusal{"no_architecture", R"({"architectures": null})", Code::not_found,
                R"(key 'architectures' is missing, expected that of a drafter, such as ["DFlashDraftModel"])"},
        Refusal{"model_type_dspark", R"({"model_type": "dspark"})", Code::unsupported,
                R"(key 'model_type' is "dspark", expected "qwen3", whose layers every published drafter has)"},
        Refusal{
            "model_type_muse", R"({"model_type": "muse_glimmer_assistant"})", Code::unsupported,
            R"(key 'model_type' is "muse_glimmer_assistant", expected "qwen3", whose layers every published drafter )"
            "has"},
        Refusal{"model_type", R"({"model_type": "llama"})", Code::unsupported,
                R"(key 'model_type' is "llama", expected "qwen3", whose layers every published drafter has)"}),
    refusal_name);

Refusal foreign(const char* name, const char* patch, const std::string& found, const std::string& neutral,
                const std::string& kind) {
  return {
      name, patch, Code::unsupported,
      "key " + found + ", expected " + neutral + " or no such key in a plain DFlash drafter; it belongs to " + kind};
}

INSTANTIATE_TEST_SUITE_P(
    ForeignKeys, DrafterRefusal,
    testing::Values(foreign("conv_kernel_size", R"({"dflash_config": {"conv_kernel_size": 2}})",
                            "'dflash_config.conv_kernel_size' is 2", "0, false", "a DFlash2 drafter"),
                    foreign("conv_group_size", R"({"conv_group_size": 16})", "'conv_group_size' is 16", "0, false",
                            "a DFlash2 drafter"),
                    foreign("selector_rank", R"({"selector_rank": 256})", "'selector_rank' is 256", "0, false",
                            "a DFlash2 drafter"),
                    foreign("selector_top_k", R"({"dspark_config": {"selector_top_k": 16}})",
                            "'dspark_config.selector_top_k' is 16", "0, false", "a DFlash2 drafter"),
                    foreign("markov_rank", R"({"dspark_markov_rank": 256})", "'dspark_markov_rank' is 256", "0, false",
                            "a DSpark drafter"),
                    foreign("confidence", R"({"enable_confidence_head": true})", "'enable_confidence_head' is true",
                            "0, false", "a DSpark drafter"),
                    foreign("shift_label", R"({"dflash_config": {"shift_label": true}})",
                            "'dflash_config.shift_label' is true", "0, false", "a block in shifted layout"),
                    foreign("value_scale", R"({"attention_value_scale": 0.612})", "'attention_value_scale' is 0.612",
                            "1", "the MiMo variant of DFlash"),
                    foreign("sinks", R"({"dflash_config": {"attention_sink_bias": true}})",
                            "'dflash_config.attention_sink_bias' is true", "0, false", "the MiMo variant of DFlash"),
                    foreign("swa_sinks", R"({"add_swa_attention_sink_bias": true})",
                            "'add_swa_attention_sink_bias' is true", "0, false", "the MiMo variant of DFlash"),
                    foreign("rotary_base", R"({"dflash_config": {"backbone_rotary_base": 5000000}})",
                            "'dflash_config.backbone_rotary_base' is 5000000", "0, false",
                            "the MiMo variant of DFlash"),
                    foreign("partial_rotary", R"({"partial_rotary_factor": 0.5})", "'partial_rotary_factor' is 0.5",
                            "1", "a partial rotary embedding, as in the MiMo variant of DFlash"),
                    foreign("gating", R"({"gating": "per-head"})", R"('gating' is "per-head")", "0, false",
                            "the Laguna variant of DFlash"),
                    foreign("interleaved", R"({"dflash_config": {"is_neox_style": false}})",
                            "'dflash_config.is_neox_style' is false", "true",
                            "a rotary embedding of interleaved pairs"),
                    foreign("rope_interleaved", R"({"rope_is_neox_style": false})", "'rope_is_neox_style' is false",
                            "true", "a rotary embedding of interleaved pairs"),
                    Refusal{"sample_from_anchor", R"({"sample_from_anchor": true})", Code::unsupported,
                            "key 'sample_from_anchor' is true, expected false or no such key in a DFlash drafter, "
                            "whose block is in place"},
                    Refusal{"v_head_dim", R"({"v_head_dim": 64})", Code::unsupported,
                            "key 'v_head_dim' is 64, expected head_dim 128"}),
    refusal_name);

// Each vendor variant by what gives it away in files that do not carry its architecture.
TEST(VendorVariants, AreRefusedByName) {
  struct Variant {
    const char* name;
    Json document;
    const char* patch;
  };
  const std::vector<Variant> variants = {
      {"the Laguna variant of DFlash", qwen3_4b(), R"({"architectures": ["DFlashLagunaForCausalLM"]})"},
      {"the Laguna variant of DFlash", qwen3_4b(), R"({"gating": "per-head"})"},
      {"the MiMo variant of DFlash", mimo(), "{}"},
      {"the MiMo variant of DFlash", qwen3_4b(), R"({"add_swa_attention_sink_bias": true})"},
      {"the MiMo variant of DFlash", qwen3_4b(), R"({"partial_rotary_factor": 0.5})"},
      {"the Gemma 4 variant of DSpark", qwen3_4b_deepspec(), R"({"architectures": ["Gemma4DSparkModel"]})"},
      {"a Domino drafter", qwen3_4b(), R"({"architectures": ["DominoDraftModel"]})"},
      {"a Domino drafter", qwen3_4b(), R"({"dflash_config": {"projector_type": "domino", "emb_dim": 256,
                                           "gru_hidden_dim": 1024, "shift_label": true}})"},
      {"the LFM2 variant of DSpark", qwen3_4b_dspark(), R"({"architectures": ["Lfm2DSparkDraftModel"]})"},
      {"a rotary embedding of interleaved pairs", qwen3_4b_dspark(), R"({"is_neox_style": false})"},
      {"the Kimi K3 variant of DSpark", qwen3_4b_dspark(), R"({"architectures": ["K3DSparkModel"]})"},
      {"no architecture of a known drafter", qwen3_4b_dspark(), R"({"architectures": ["DeepseekV4DSparkModel"]})"},
      // DSpark with DFlash2's convolutions.
      {"a DFlash2 drafter", qwen3_4b_dspark(), R"({"dflash_config": {"conv_kernel_size": 2, "conv_group_size": 16}})"},
  };
  for (const Variant& variant : variants) {
    expect_error(read_drafter_config(patched(variant.document, variant.patch), "config.json"), Code::unsupported,
                 {"config.json: key '", "expected", variant.name});
  }
}

constexpr Code kCorrupt = Code::corrupt_file;

INSTANTIATE_TEST_SUITE_P(
    Values, DrafterRefusal,
    testing::Values(
        Refusal{"target_layers_zero", R"({"num_target_layers": 0})", kCorrupt,
                "key 'num_target_layers' is 0, expected an integer from 1 to 4096"},
        Refusal{"target_hidden_size", R"({"target_hidden_size": 0})", kCorrupt,
                "key 'target_hidden_size' is 0, expected an integer from 1 to 16777216"},
        Refusal{"draft_vocab", R"({"draft_vocab_size": 151937})", kCorrupt,
                "key 'draft_vocab_size' is 151937, expected an integer from 1 to 151936"},
        Refusal{"multiplier", R"({"dflash_config": {"output_multiplier": 0}})", kCorrupt,
                "key 'dflash_config.output_multiplier' is 0, expected a number above 0"},
        Refusal{"logit_scale", R"({"logit_scale": -1.5})", kCorrupt,
                "key 'logit_scale' is -1.5, expected a number above 0"},
        Refusal{"softcap", R"({"final_logit_softcapping": -30.0})", kCorrupt,
                "key 'final_logit_softcapping' is -30.0, expected a number of at least 0"},
        Refusal{"softcap_huge", R"({"final_logit_softcapping": 1e300})", kCorrupt,
                "key 'final_logit_softcapping' is 1e+300, expected a number of at least 0"},
        Refusal{"embedding_scale", R"({"input_embedding_scale": "sqrt"})", kCorrupt,
                R"(key 'input_embedding_scale' is "sqrt", expected a number)"},
        Refusal{"gqa", R"({"dflash_config": {"attention_mode": "gqa"}, "num_key_value_heads": 32})", kCorrupt,
                R"(key 'dflash_config.attention_mode' is "gqa", expected "mha" with num_attention_heads 32 and )"
                "num_key_value_heads 32"},
        Refusal{"mha", R"({"attention_mode": "mha"})", kCorrupt,
                R"(key 'attention_mode' is "mha", expected "gqa" with num_attention_heads 32 and )"
                "num_key_value_heads 8"},
        Refusal{"attention_mode", R"({"attention_mode": "mla"})", Code::unsupported,
                R"(key 'attention_mode' is "mla", expected "gqa" or "mha")"},
        Refusal{"dflash_config_list", R"({"dflash_config": [1]})", kCorrupt,
                "key 'dflash_config' is [1], expected an object"},
        Refusal{"no_theta", R"({"rope_theta": null})", Code::not_found,
                "key 'rope_theta' is missing, expected a number above 1, there or in rope_parameters"},
        Refusal{
            "rope_type", R"({"rope_scaling": {"rope_type": "proportional", "factor": 8}})", Code::unsupported,
            R"(key 'rope_scaling.rope_type' is "proportional", expected rope type default, linear, llama3 or yarn)"},
        Refusal{"activation", R"({"hidden_act": "gelu"})", Code::unsupported,
                R"(key 'hidden_act' is "gelu", expected "silu")"}),
    refusal_name);

INSTANTIATE_TEST_SUITE_P(
    FieldFault1_LayerIds, DrafterRefusal,
    testing::Values(
        Refusal{"ids_text", R"({"dflash_config": {"target_layer_ids": "1,9"}})", kCorrupt,
                R"(key 'dflash_config.target_layer_ids' is "1,9", expected a list of integers)"},
        Refusal{"ids_empty", R"({"dflash_config": {"target_layer_ids": []}})", kCorrupt,
                "key 'dflash_config.target_layer_ids' is [], expected at least one layer"},
        Refusal{"id_embedding", R"({"dflash_config": {"target_layer_ids": [-1, 2]}})", kCorrupt,
                "key 'dflash_config.target_layer_ids[0]' is -1, expected an integer from 0 to 35"},
        Refusal{"id_outside", R"({"dflash_config": {"target_layer_ids": [1, 36]}})", kCorrupt,
                "key 'dflash_config.target_layer_ids[1]' is 36, expected an integer from 0 to 35"},
        Refusal{"id_twice", R"({"dflash_config": {"target_layer_ids": [9, 1, 9]}})", kCorrupt,
                "key 'dflash_config.target_layer_ids' is [9, 1, 9], expected each layer at most once"},
        Refusal{"aux_id_zero", R"({"aux_hidden_state_layer_ids": [0, 2]})", kCorrupt,
                "key 'aux_hidden_state_layer_ids[0]' is 0, expected an integer from 1 to 36"},
        Refusal{"no_ids", R"({"dflash_config": {"target_layer_ids": null}, "num_target_layers": null})",
                Code::not_found,
                "key 'target_layer_ids' is missing, expected a list of target layers, or num_target_layers to compute "
                "it from"},
        Refusal{"fallback_repeats", R"({"dflash_config": {"target_layer_ids": null}, "num_target_layers": 6})",
                Code::not_found,
                "key 'target_layer_ids' is missing, expected a list of target layers: what num_target_layers 6 and "
                "num_hidden_layers 5 give, [1, 2, 2, 2, 3], is not one"},
        Refusal{"fallback_outside",
                R"({"dflash_config": {"target_layer_ids": null}, "num_target_layers": 2, "num_hidden_layers": 2,
                    "layer_types": null})",
                Code::not_found,
                "key 'target_layer_ids' is missing, expected a list of target layers: what num_target_layers 2 and "
                "num_hidden_layers 2 give, [1, -1], is not one"}),
    refusal_name);

INSTANTIATE_TEST_SUITE_P(
    FieldFault2_Mask, DrafterRefusal,
    testing::Values(
        Refusal{"no_mask", R"({"dflash_config": {"mask_token_id": null}})", Code::not_found,
                "key 'mask_token_id' is missing, expected an id below vocab_size 151936, at the top level or in "
                "dflash_config"},
        Refusal{"mask_outside", R"({"dflash_config": {"mask_token_id": 151936}})", kCorrupt,
                "key 'dflash_config.mask_token_id' is 151936, expected an integer from 0 to 151935"},
        Refusal{"mask_negative", R"({"dflash_config": {"mask_token_id": -1}})", kCorrupt,
                "key 'dflash_config.mask_token_id' is -1, expected an integer from 0 to 151935"}),
    refusal_name);

INSTANTIATE_TEST_SUITE_P(
    FieldFault7_BlockSize, DrafterRefusal,
    testing::Values(Refusal{"no_block_size", R"({"block_size": null})", Code::not_found,
                            "key 'block_size' is missing, expected an integer, at the top level or in dflash_config"},
                    Refusal{"block_of_one", R"({"block_size": 1})", Code::unsupported,
                            "key 'block_size' is 1, expected at least 2: a block of 1 in place has no drafts"},
                    Refusal{"block_of_none", R"({"dflash_config": {"block_size": 0}, "block_size": null})", kCorrupt,
                            "key 'dflash_config.block_size' is 0, expected an integer from 1 to 1024"},
                    Refusal{"block_text", R"({"block_size": "16"})", kCorrupt,
                            R"(key 'block_size' is "16", expected an integer from 1 to 1024)"}),
    refusal_name);

}  // namespace
}  // namespace blockdraft
