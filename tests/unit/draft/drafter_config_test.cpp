#include "draft/drafter_config.h"

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"

namespace blockdraft {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

const std::filesystem::path kSource = BLOCKDRAFT_SOURCE_DIR;

// The complete examples of spec 2.7.
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

// `patch` is a merge patch: null removes a key.
Json patched(Json document, const char* patch) {
  document.merge_patch(Json::parse(patch));
  return document;
}

Result<DrafterConfig> read(const char* patch) { return read_drafter_config(patched(qwen3_4b(), patch), "config.json"); }

DrafterConfig value_of(Result<DrafterConfig> config) {
  EXPECT_TRUE(config.ok()) << (config ? "" : config.error().message);
  return config ? *config : DrafterConfig();
}

DrafterConfig read_ok(const char* patch) { return value_of(read(patch)); }

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

TEST(DrafterConfig, ReadsQwen3Of4B) {
  const DrafterConfig config = read_ok("{}");
  EXPECT_EQ(config.architecture, "DFlashDraftModel");
  EXPECT_EQ(config.origin, "config.json");
  EXPECT_EQ(config.transformer.hidden_size, 2560);
  EXPECT_EQ(config.transformer.intermediate_size, 9728);
  EXPECT_EQ(config.transformer.num_hidden_layers, 5);
  EXPECT_EQ(config.transformer.num_attention_heads, 32);
  EXPECT_EQ(config.transformer.num_key_value_heads, 8);
  EXPECT_EQ(config.transformer.head_dim, 128);
  EXPECT_EQ(config.transformer.vocab_size, 151936);
  EXPECT_EQ(config.transformer.rms_norm_eps, 1e-6);
  EXPECT_EQ(config.transformer.rope.rope_theta, 1e6);
  EXPECT_EQ(slides(config), std::vector<bool>(5, false));
  EXPECT_EQ(causality(config), std::vector<bool>(5, false));
  EXPECT_THAT(windows(config), Each(0));
  EXPECT_EQ(config.layout, BlockLayout::in_place);
  EXPECT_EQ(config.block_size, 16);
  EXPECT_EQ(config.trained_width(), 15);
  EXPECT_EQ(config.mask_token_id, 151669);
  EXPECT_THAT(config.target_layer_ids, ElementsAre(1, 9, 17, 25, 33));
  EXPECT_FALSE(config.target_layer_ids_computed);
  EXPECT_EQ(config.num_target_layers, 36);
  EXPECT_EQ(config.target_hidden_size, 2560);
  EXPECT_EQ(config.draft_vocab_size, 151936);
  EXPECT_EQ(config.input_embedding_scale, std::nullopt);
  EXPECT_EQ(config.output_multiplier, 1.0f);
  EXPECT_EQ(config.final_logit_softcapping, 0.0f);
  EXPECT_THAT(config.warnings, IsEmpty());
}

TEST(DrafterConfig, ReadsQwen36Of27B) {
  const DrafterConfig config = value_of(read_drafter_config(qwen36_27b(), "config.json"));
  EXPECT_EQ(config.transformer.hidden_size, 5120);
  EXPECT_EQ(config.transformer.rope.rope_theta, 1e7);
  EXPECT_THAT(slides(config), ElementsAre(true, true, true, true, false));
  EXPECT_THAT(causality(config), ElementsAre(true, true, true, true, false));
  EXPECT_THAT(windows(config), ElementsAre(2048, 2048, 2048, 2048, 0));
  EXPECT_EQ(config.block_size, 16);
  EXPECT_EQ(config.mask_token_id, 248070);
  EXPECT_THAT(config.target_layer_ids, ElementsAre(1, 16, 31, 46, 61));
  EXPECT_EQ(config.num_target_layers, 64);
  EXPECT_THAT(config.warnings, IsEmpty());
}

// The gpt-oss row of spec 2.7: biases, YaRN, eps 1e-5, a head dimension that is no quotient, L and F unequal.
TEST(DrafterConfig, ReadsGptOssOf20B) {
  const DrafterConfig config = read_ok(R"({
    "hidden_size": 2880, "intermediate_size": 7680, "num_attention_heads": 64, "num_key_value_heads": 8,
    "head_dim": 64, "num_hidden_layers": 8, "layer_types": null, "block_size": 8, "num_target_layers": 24,
    "dflash_config": {"mask_token_id": 200000, "target_layer_ids": [1, 6, 11, 16, 21]}, "rope_theta": 150000,
    "rms_norm_eps": 1e-05, "vocab_size": 201088, "attention_bias": true, "max_position_embeddings": 131072,
    "rope_scaling": {"rope_type": "yarn", "factor": 32, "original_max_position_embeddings": 4096}})");
  EXPECT_EQ(config.layers.size(), 8u);
  EXPECT_EQ(config.target_layer_ids.size(), 5u);
  EXPECT_TRUE(config.transformer.attention_bias);
  EXPECT_EQ(config.transformer.query_size(), 4096);
  EXPECT_EQ(config.transformer.rope.type, RopeType::yarn);
  EXPECT_DOUBLE_EQ(config.transformer.rope.attention_factor, 1.3465735902799727);
  EXPECT_EQ(config.trained_width(), 7);
}

TEST(DrafterConfig, MaskMayEqualTheStopId) {
  EXPECT_EQ(read_ok(R"({"eos_token_id": 2, "dflash_config": {"mask_token_id": 2}})").mask_token_id, 2);
}

TEST(DrafterConfig, WidthsOfBothLayouts) {
  DrafterConfig config;
  config.block_size = 7;
  EXPECT_EQ(config.trained_width(), 6);
  EXPECT_EQ(config.rows_for_width(4), 5);
  config.layout = BlockLayout::shifted;
  EXPECT_EQ(config.trained_width(), 7);
  EXPECT_EQ(config.rows_for_width(4), 4);
}

// --- precedence -----------------------------------------------------------------------------------------------------

// The four places of a draft key, the one that wins first.
const std::vector<std::string> kPlaces = {"/dspark_block_size", "/dflash_config/block_size",
                                          "/dspark_config/block_size", "/block_size"};
const std::vector<std::string> kNames = {"dspark_block_size", "dflash_config.block_size", "dspark_config.block_size",
                                         "block_size"};

Json without_block_size() { return patched(qwen3_4b(), R"({"block_size": null})"); }

TEST(DraftKeyPrecedence, EachPlaceAloneCounts) {
  for (const std::string& place : kPlaces) {
    Json document = without_block_size();
    document[Json::json_pointer(place)] = 5;
    const DrafterConfig config = value_of(read_drafter_config(document, "config.json"));
    EXPECT_EQ(config.block_size, 5) << place;
    EXPECT_THAT(config.warnings, IsEmpty()) << place;
  }
}

TEST(DraftKeyPrecedence, OfTwoThatDisagreeTheEarlierWinsWithAWarning) {
  for (size_t first = 0; first < kPlaces.size(); ++first) {
    for (size_t second = first + 1; second < kPlaces.size(); ++second) {
      Json document = without_block_size();
      document[Json::json_pointer(kPlaces[first])] = 5;
      document[Json::json_pointer(kPlaces[second])] = 9;
      const DrafterConfig config = value_of(read_drafter_config(document, "config.json"));
      EXPECT_EQ(config.block_size, 5);
      EXPECT_THAT(config.warnings, ElementsAre("config.json: key '" + kNames[first] + "' is 5 but '" + kNames[second] +
                                               "' is 9; the first is used"));
    }
  }
}

TEST(DraftKeyPrecedence, CopiesThatAgreeAndNullsAreQuiet) {
  for (const std::string& place : kPlaces) {
    Json document = without_block_size();
    for (const std::string& other : kPlaces) document[Json::json_pointer(other)] = nullptr;
    document[Json::json_pointer(place)] = 5;
    EXPECT_EQ(value_of(read_drafter_config(document, "config.json")).block_size, 5) << place;
    for (const std::string& other : kPlaces) document[Json::json_pointer(other)] = 5;
    EXPECT_THAT(value_of(read_drafter_config(document, "config.json")).warnings, IsEmpty()) << place;
  }
}

TEST(DraftKeyPrecedence, EveryDraftKeyIsLookedUpInEveryPlace) {
  struct Key {
    const char* name;
    const char* value;
    std::function<bool(const DrafterConfig&)> holds;
  };
  const std::vector<Key> keys = {
      {"mask_token_id", "77", [](const DrafterConfig& c) { return c.mask_token_id == 77; }},
      {"target_layer_ids", "[3, 2]", [](const DrafterConfig& c) { return c.target_layer_ids.size() == 2; }},
      {"num_target_layers", "40", [](const DrafterConfig& c) { return c.num_target_layers == 40; }},
      {"target_hidden_size", "512", [](const DrafterConfig& c) { return c.target_hidden_size == 512; }},
      {"draft_vocab_size", "32000", [](const DrafterConfig& c) { return c.draft_vocab_size == 32000; }},
      {"input_embedding_scale", "8.0", [](const DrafterConfig& c) { return c.input_embedding_scale == 8.0f; }},
      {"output_multiplier", "0.25", [](const DrafterConfig& c) { return c.output_multiplier == 0.25f; }},
      {"logit_scale", "0.25", [](const DrafterConfig& c) { return c.output_multiplier == 0.25f; }},
      {"final_logit_softcapping", "30", [](const DrafterConfig& c) { return c.final_logit_softcapping == 30.0f; }},
  };
  for (const Key& key : keys) {
    const std::string name = key.name;
    for (const std::string& place :
         {"/dspark_" + name, "/dflash_config/" + name, "/dspark_config/" + name, "/" + name}) {
      Json document = qwen3_4b();
      document.erase(name);
      document["dflash_config"].erase(name);
      document[Json::json_pointer(place)] = Json::parse(key.value);
      const DrafterConfig config = value_of(read_drafter_config(document, "config.json"));
      EXPECT_TRUE(key.holds(config)) << place;
      EXPECT_THAT(config.warnings, IsEmpty()) << place;
    }
  }
}

TEST(DraftKeyPrecedence, NoiseTokenIsAnAliasOfTheMask) {
  const DrafterConfig alone = read_ok(R"({"dflash_config": {"mask_token_id": null}, "dspark_noise_token_id": 9})");
  EXPECT_EQ(alone.mask_token_id, 9);
  EXPECT_THAT(alone.warnings, IsEmpty());
  const DrafterConfig both = read_ok(R"({"dspark_noise_token_id": 9})");
  EXPECT_EQ(both.mask_token_id, 9);
  EXPECT_THAT(both.warnings, ElementsAre("config.json: key 'dspark_noise_token_id' is 9 but "
                                         "'dflash_config.mask_token_id' is 151669; the first is used"));
}

TEST(DraftKeyPrecedence, UnknownNestedKeysAreNamed) {
  EXPECT_THAT(read_ok(R"({"dflash_config": {"head_mix": 3, "num_anchors": 512}})").warnings,
              ElementsAre("config.json: key 'dflash_config.head_mix' is 3; it is not known and not used"));
}

// --- taps -----------------------------------------------------------------------------------------------------------

TEST(TargetLayerIds, KeepTheOrderOfTheFile) {
  EXPECT_THAT(read_ok(R"({"dflash_config": {"target_layer_ids": [4, 0, 35, 3]}})").target_layer_ids,
              ElementsAre(4, 0, 35, 3));
}

TEST(TargetLayerIds, NeedNoLayerCount) {
  const DrafterConfig config = read_ok(R"({"num_target_layers": null})");
  EXPECT_EQ(config.num_target_layers, std::nullopt);
  EXPECT_THAT(config.target_layer_ids, ElementsAre(1, 9, 17, 25, 33));
}

TEST(TargetLayerIds, OtherSpellingsCountFromTheEmbeddings) {
  for (const char* patch :
       {R"({"dflash_config": {"target_layer_ids": null}, "eagle_aux_hidden_state_layer_ids": [2, 10, 36]})",
        R"({"dflash_config": {"target_layer_ids": null, "aux_hidden_state_layer_ids": [2, 10, 36]}})",
        R"({"dflash_config": {"target_layer_ids": null, "layer_ids": [1, 9, 35]}})"}) {
    const DrafterConfig config = read_ok(patch);
    EXPECT_THAT(config.target_layer_ids, ElementsAre(1, 9, 35)) << patch;
    EXPECT_THAT(config.warnings, IsEmpty()) << patch;
  }
  EXPECT_THAT(read_ok(R"({"eagle_aux_hidden_state_layer_ids": [2, 10, 18, 26, 34]})").warnings, IsEmpty());
  EXPECT_THAT(read_ok(R"({"eagle_aux_hidden_state_layer_ids": [1, 9, 17, 25, 33]})").warnings,
              ElementsAre("config.json: key 'dflash_config.target_layer_ids' is [1, 9, 17, 25, 33] but "
                          "'eagle_aux_hidden_state_layer_ids' is [1, 9, 17, 25, 33]; the first is used"));
}

TEST(TargetLayerIds, AreComputedWithAWarning) {
  const DrafterConfig config = read_ok(R"({"dflash_config": {"target_layer_ids": null}})");
  EXPECT_TRUE(config.target_layer_ids_computed);
  EXPECT_THAT(config.target_layer_ids, ElementsAre(1, 9, 17, 25, 33));
  EXPECT_THAT(config.warnings, ElementsAre("config.json: no target_layer_ids; [1, 9, 17, 25, 33] computed from "
                                           "num_target_layers 36 and num_hidden_layers 5"));
}

// The vectors of spec section 10.
TEST(TargetLayerIds, FallbackOfTheSpec) {
  EXPECT_THAT(fallback_layer_ids(36, 5), ElementsAre(1, 9, 17, 25, 33));
  EXPECT_THAT(fallback_layer_ids(64, 5), ElementsAre(1, 16, 31, 46, 61));
  EXPECT_THAT(fallback_layer_ids(32, 5), ElementsAre(1, 8, 15, 22, 29));
  EXPECT_THAT(fallback_layer_ids(48, 5), ElementsAre(1, 12, 23, 34, 45));
  EXPECT_THAT(fallback_layer_ids(40, 5), ElementsAre(1, 10, 19, 28, 37));
  EXPECT_THAT(fallback_layer_ids(28, 5), ElementsAre(1, 7, 13, 19, 25));
  EXPECT_THAT(fallback_layer_ids(24, 5), ElementsAre(1, 6, 11, 16, 21));
  EXPECT_THAT(fallback_layer_ids(30, 5), ElementsAre(1, 8, 14, 20, 27));
  EXPECT_THAT(fallback_layer_ids(28, 1), ElementsAre(14));
  EXPECT_THAT(fallback_layer_ids(60, 6), ElementsAre(1, 12, 23, 35, 46, 57));
  EXPECT_THAT(fallback_layer_ids(30, 6), ElementsAre(1, 6, 11, 17, 22, 27));
}

// Below four layers the ids leave the target; they are rounded like the others all the same.
TEST(TargetLayerIds, FallbackOfTinyTargets) {
  EXPECT_THAT(fallback_layer_ids(3, 3), ElementsAre(1, 0, 0));
  EXPECT_THAT(fallback_layer_ids(2, 4), ElementsAre(1, 0, 0, -1));
  EXPECT_THAT(fallback_layer_ids(1, 1), ElementsAre(0));
}

// --- layers ---------------------------------------------------------------------------------------------------------

#define TWO_SLIDE \
  R"("num_hidden_layers": 2, "layer_types": ["sliding_attention", "full_attention"], "use_sliding_window": null, )"

TEST(DrafterLayers, AbsentTypesMeanFullAttention) {
  const DrafterConfig config = read_ok(R"({"layer_types": null, "num_hidden_layers": 3})");
  EXPECT_THAT(slides(config), ElementsAre(false, false, false));
  EXPECT_THAT(config.warnings, IsEmpty());
}

TEST(DrafterLayers, AnUnusedWindowIsNamed) {
  const DrafterConfig config = read_ok(R"({"layer_types": null, "use_sliding_window": true, "sliding_window": 64})");
  EXPECT_THAT(windows(config), Each(0));
  EXPECT_THAT(config.warnings, ElementsAre("config.json: use_sliding_window is true but there are no layer_types; all "
                                           "layers attend fully"));
}

struct LayerCase {
  const char* name;
  const char* patch;  // of a drafter with one sliding and one full layer
  bool sliding_causal;
  bool full_causal;
  int32_t window;
};

class DrafterLayersOf : public testing::TestWithParam<LayerCase> {};

TEST_P(DrafterLayersOf, CausalityAndWindow) {
  const LayerCase& expected = GetParam();
  const DrafterConfig config = read_ok(expected.patch);
  EXPECT_THAT(slides(config), ElementsAre(true, false));
  EXPECT_THAT(causality(config), ElementsAre(expected.sliding_causal, expected.full_causal));
  EXPECT_THAT(windows(config), ElementsAre(expected.window, 0));
  EXPECT_THAT(config.warnings, IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(
    All, DrafterLayersOf,
    testing::Values(
        LayerCase{"default", "{" TWO_SLIDE R"("sliding_window": 16})", true, false, 16},
        LayerCase{"switched_on", "{" TWO_SLIDE R"("sliding_window": 16, "use_sliding_window": true})", true, false, 16},
        LayerCase{"switched_off", "{" TWO_SLIDE R"("sliding_window": 16, "use_sliding_window": false})", true, false,
                  0},
        LayerCase{"off_without_window", "{" TWO_SLIDE R"("use_sliding_window": false})", true, false, 0},
        LayerCase{"is_causal", "{" TWO_SLIDE R"("sliding_window": 16, "is_causal": true})", true, true, 16},
        LayerCase{"not_is_causal", "{" TWO_SLIDE R"("sliding_window": 16, "is_causal": false})", false, false, 16},
        LayerCase{"causal", "{" TWO_SLIDE R"("sliding_window": 16, "dflash_config": {"causal": true}})", true, true,
                  16},
        LayerCase{"not_causal", "{" TWO_SLIDE R"("sliding_window": 16, "dflash_config": {"causal": false}})", false,
                  false, 16},
        LayerCase{"non_causal_windows", "{" TWO_SLIDE R"("sliding_window": 1, "sliding_window_non_causal": true})",
                  false, false, 1},
        LayerCase{"causal_windows", "{" TWO_SLIDE R"("sliding_window": 1, "sliding_window_non_causal": false})", true,
                  false, 1},
        LayerCase{"is_causal_first",
                  "{" TWO_SLIDE R"("sliding_window": 16, "is_causal": true, "sliding_window_non_causal": true})", true,
                  true, 16}),
    [](const testing::TestParamInfo<LayerCase>& layer_case) { return std::string(layer_case.param.name); });

TEST(DrafterLayers, IsCausalWinsOverCausalWithAWarning) {
  const DrafterConfig config =
      read_ok("{" TWO_SLIDE R"("sliding_window": 16, "is_causal": false, "dflash_config": {"causal": true}})");
  EXPECT_THAT(causality(config), ElementsAre(false, false));
  EXPECT_THAT(config.warnings, ElementsAre("config.json: key 'is_causal' is false but 'dflash_config.causal' is true; "
                                           "the first is used"));
}

#define ALL_SLIDE                                                                                  \
  R"("num_hidden_layers": 2, "layer_types": null, "use_sliding_window": null, "dflash_config": {)" \
  R"("use_swa": true, "swa_window_size": 1024})"

TEST(DrafterLayers, UseSwaMakesAllLayersSlideBothWays) {
  const DrafterConfig config = read_ok("{" ALL_SLIDE "}");
  EXPECT_THAT(slides(config), ElementsAre(true, true));
  EXPECT_THAT(causality(config), ElementsAre(false, false));
  EXPECT_THAT(windows(config), ElementsAre(1024, 1024));
  EXPECT_THAT(config.warnings, IsEmpty());
}

TEST(DrafterLayers, ExplicitCausalityWinsOverUseSwa) {
  EXPECT_THAT(causality(read_ok("{" ALL_SLIDE R"(, "is_causal": true})")), ElementsAre(true, true));
  EXPECT_THAT(causality(read_ok("{" ALL_SLIDE R"(, "sliding_window_non_causal": false})")), ElementsAre(true, true));
}

TEST(DrafterLayers, UseSwaNamesAnotherWindow) {
  const DrafterConfig config = read_ok("{" ALL_SLIDE R"(, "sliding_window": 2048})");
  EXPECT_THAT(windows(config), ElementsAre(1024, 1024));
  EXPECT_THAT(config.warnings, ElementsAre("config.json: key 'dflash_config.swa_window_size' is 1024 but "
                                           "'sliding_window' is 2048; the first is used"));
}

TEST(DrafterLayers, LayerTypesWinOverUseSwa) {
  const DrafterConfig config = read_ok(R"({"num_hidden_layers": 1, "layer_types": ["full_attention"],
                                           "dflash_config": {"use_swa": true, "swa_window_size": 8}})");
  EXPECT_THAT(slides(config), ElementsAre(false));
  EXPECT_THAT(config.warnings, ElementsAre(R"(config.json: key 'layer_types' is ["full_attention"] but )"
                                           "'dflash_config.use_swa' is true; the first is used"));
}

// --- scales ---------------------------------------------------------------------------------------------------------

TEST(DrafterScales, LogitScaleYieldsToOutputMultiplier) {
  const DrafterConfig config = read_ok(R"({"output_multiplier": 0.5, "logit_scale": 0.25})");
  EXPECT_EQ(config.output_multiplier, 0.5f);
  EXPECT_THAT(config.warnings, ElementsAre("config.json: key 'output_multiplier' is 0.5 but 'logit_scale' is 0.25; the "
                                           "first is used"));
  EXPECT_THAT(read_ok(R"({"output_multiplier": 0.5, "logit_scale": 0.5})").warnings, IsEmpty());
}

TEST(DrafterScales, SoftcapOfZeroIsNone) {
  EXPECT_EQ(read_ok(R"({"final_logit_softcapping": 0})").final_logit_softcapping, 0.0f);
}

TEST(DrafterScales, NeutralKeysOfOtherKindsPass) {
  const DrafterConfig config = read_ok(R"({"markov_rank": 0, "enable_confidence_head": false, "conv_kernel_size": 0,
                                           "attention_value_scale": 1.0, "partial_rotary_factor": 1.0,
                                           "v_head_dim": 128, "gating": false, "rope_is_neox_style": true,
                                           "sample_from_anchor": false, "shift_label": false,
                                           "dflash_config": {"projector_type": "dflash", "attention_mode": "gqa"}})");
  EXPECT_THAT(config.warnings, IsEmpty());
  EXPECT_EQ(config.layout, BlockLayout::in_place);
}

TEST(DrafterScales, AttentionModeMhaNeedsAsManyHeads) {
  EXPECT_EQ(read_ok(R"({"attention_mode": "mha", "num_key_value_heads": 32})").transformer.num_key_value_heads, 32);
}

// --- real files -----------------------------------------------------------------------------------------------------

DrafterConfig read_folder(const char* path) { return value_of(read_drafter_config(kSource / path)); }

DrafterConfig read_golden(const std::string& name) { return read_folder(("tests/golden/" + name).c_str()); }

TEST(GoldenConfigs, AllPlainDFlashFixturesAreRead) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kSource / "tests/golden")) {
    const std::string name = entry.path().filename().string();
    if (name.rfind("dflash_", 0) != 0) continue;
    ++count;
    const DrafterConfig config = read_golden(name);
    EXPECT_EQ(config.origin, (entry.path() / "config.json").string());
    EXPECT_EQ(config.transformer.hidden_size, 64) << name;
    EXPECT_EQ(config.transformer.num_hidden_layers, 2) << name;
    EXPECT_EQ(config.transformer.vocab_size, 320) << name;
    EXPECT_EQ(config.layers.size(), 2u) << name;
    EXPECT_EQ(config.mask_token_id, 310) << name;
    EXPECT_EQ(config.num_target_layers, 6) << name;
    EXPECT_EQ(config.target_hidden_size, 64) << name;
    EXPECT_THAT(config.warnings, IsEmpty()) << name;
  }
  EXPECT_EQ(count, 14);
}

TEST(GoldenConfigs, Plain) {
  for (const char* name :
       {"dflash_plain", "dflash_fp8_row", "dflash_nvfp4_modelopt", "dflash_nvfp4_compressed_tensors"}) {
    const DrafterConfig config = read_golden(name);
    EXPECT_EQ(config.block_size, 8) << name;
    EXPECT_THAT(config.target_layer_ids, ElementsAre(1, 3, 4)) << name;
    EXPECT_THAT(causality(config), ElementsAre(false, false)) << name;
    EXPECT_EQ(config.transformer.rope.rope_theta, 10000.0) << name;
    EXPECT_EQ(config.draft_vocab_size, 320) << name;
  }
}

TEST(GoldenConfigs, BiasGroupsAndUnsortedTaps) {
  const DrafterConfig config = read_golden("dflash_bias_gqa4_unsorted_taps");
  EXPECT_TRUE(config.transformer.attention_bias);
  EXPECT_EQ(config.transformer.num_attention_heads, 8);
  EXPECT_EQ(config.transformer.num_key_value_heads, 2);
  EXPECT_THAT(config.target_layer_ids, ElementsAre(4, 0, 2, 3));
}

TEST(GoldenConfigs, NestedTheta) {
  const DrafterConfig config = read_golden("dflash_block16_headdim128_theta_nested");
  EXPECT_EQ(config.transformer.rope.rope_theta, 500000.0);
  EXPECT_EQ(config.transformer.head_dim, 128);
  EXPECT_EQ(config.transformer.rms_norm_eps, 1e-5);
  EXPECT_EQ(config.block_size, 16);
}

TEST(GoldenConfigs, Yarn) {
  const RopeConfig rope = read_golden("dflash_yarn").transformer.rope;
  EXPECT_EQ(rope.type, RopeType::yarn);
  EXPECT_EQ(rope.rope_theta, 150000.0);
  EXPECT_EQ(rope.factor, 32.0);
  EXPECT_EQ(rope.original_max_position_embeddings, 4096);
  EXPECT_DOUBLE_EQ(rope.attention_factor, 1.3465735902799727);
}

TEST(GoldenConfigs, ScalesAndReducedVocabulary) {
  const DrafterConfig scaled = read_golden("dflash_scale_softcap");
  EXPECT_EQ(scaled.input_embedding_scale, 8.0f);
  EXPECT_EQ(scaled.output_multiplier, 0.25f);
  EXPECT_EQ(scaled.final_logit_softcapping, 5.0f);
  EXPECT_EQ(read_golden("dflash_reduced_vocab_d2t").draft_vocab_size, 200);
}

TEST(GoldenConfigs, WindowsAndCausality) {
  const DrafterConfig full = read_golden("dflash_causal_full_layers");
  EXPECT_THAT(causality(full), ElementsAre(true, true));
  EXPECT_THAT(windows(full), ElementsAre(0, 0));

  const DrafterConfig below = read_golden("dflash_window_below_block");
  EXPECT_THAT(slides(below), ElementsAre(true, false));
  EXPECT_THAT(causality(below), ElementsAre(false, false));
  EXPECT_THAT(windows(below), ElementsAre(5, 0));
  EXPECT_EQ(below.block_size, 16);

  const DrafterConfig causal = read_golden("dflash_window_causal");
  EXPECT_THAT(causality(causal), ElementsAre(true, false));
  EXPECT_THAT(windows(causal), ElementsAre(16, 0));

  const DrafterConfig noncausal = read_golden("dflash_window_noncausal");
  EXPECT_THAT(slides(noncausal), ElementsAre(true, true));
  EXPECT_THAT(causality(noncausal), ElementsAre(false, false));
  EXPECT_THAT(windows(noncausal), ElementsAre(16, 16));

  const DrafterConfig off = read_golden("dflash_window_switched_off");
  EXPECT_THAT(slides(off), ElementsAre(true, false));
  EXPECT_THAT(causality(off), ElementsAre(true, false));
  EXPECT_THAT(windows(off), ElementsAre(0, 0));
}

TEST(DemoConfigs, ReadsTheDFlashDrafter) {
  const DrafterConfig config = read_folder("demo/pycode-14m-dflash");
  EXPECT_EQ(config.transformer.hidden_size, 384);
  EXPECT_EQ(config.transformer.num_hidden_layers, 2);
  EXPECT_EQ(config.transformer.vocab_size, 4160);
  EXPECT_EQ(config.block_size, 8);
  EXPECT_EQ(config.mask_token_id, 4100);
  EXPECT_THAT(config.target_layer_ids, ElementsAre(1, 4, 6));
  EXPECT_EQ(config.num_target_layers, 8);
  EXPECT_THAT(config.warnings, IsEmpty());
}

TEST(RealFiles, OtherKindsAreRefusedByName) {
  int count = 0;
  for (const char* parent : {"tests/golden", "demo"}) {
    for (const auto& entry : std::filesystem::directory_iterator(kSource / parent)) {
      const std::string name = entry.path().filename().string();
      const bool is_dflash2 = name.find("dflash2") != std::string::npos;
      if (!is_dflash2 && name.find("dspark") == std::string::npos) continue;
      ++count;
      const auto config = read_drafter_config(entry.path());
      ASSERT_FALSE(config.ok()) << name;
      EXPECT_EQ(config.error().code, Code::unsupported) << name;
      EXPECT_THAT(config.error().message, StartsWith((entry.path() / "config.json").string() + ": key '")) << name;
      EXPECT_THAT(config.error().message, HasSubstr(is_dflash2 ? "; this is a DFlash2 drafter"
                                                               : "; this is a DSpark "
                                                                 "drafter"))
          << name;
    }
  }
  EXPECT_EQ(count, 11);
}

TEST(RealFiles, TheExamplesOfOtherKindsAreRefusedByName) {
  const auto dflash2 = read_drafter_config(qwen38_27b_dflash2(), "config.json");
  ASSERT_FALSE(dflash2.ok());
  EXPECT_EQ(dflash2.error().message,
            R"(config.json: key 'architectures' is ["DFlash2DraftModel"], expected a plain DFlash drafter of )"
            R"(architecture ["DFlashDraftModel"]; this is a DFlash2 drafter)");
  const auto vendor = read_drafter_config(mimo(), "config.json");
  ASSERT_FALSE(vendor.ok());
  EXPECT_EQ(vendor.error().code, Code::unsupported);
  EXPECT_EQ(vendor.error().message,
            "config.json: key 'dflash_config.attention_value_scale' is 0.612, expected 1 or no such key in a plain "
            "DFlash drafter; this is the MiMo variant of DFlash");
}

// Without what makes it MiMo's, the same file is a plain drafter that taps the target's last layer.
TEST(RealFiles, TheRestOfTheMiMoExampleIsRead) {
  const DrafterConfig config = value_of(read_drafter_config(patched(mimo(), R"({"partial_rotary_factor": null,
                          "dflash_config": {"backbone_rotary_base": null, "attention_value_scale": null,
                                            "attention_sink_bias": null}})"),
                                                            "config.json"));
  EXPECT_THAT(config.target_layer_ids, ElementsAre(0, 15, 31, 47, 69));
  EXPECT_THAT(windows(config), Each(1024));
  EXPECT_EQ(causality(config), std::vector<bool>(5, false));
  EXPECT_EQ(config.block_size, 8);
  EXPECT_THAT(config.warnings, IsEmpty());
}

TEST(RealFiles, MissingFolderAndWrongDocument) {
  EXPECT_EQ(read_drafter_config(kSource / "demo/no-such-folder").error().code, Code::not_found);
  const auto list = read_drafter_config(Json::parse("[]"), "config.json");
  ASSERT_FALSE(list.ok());
  EXPECT_EQ(list.error().code, Code::corrupt_file);
  EXPECT_EQ(list.error().message, "config.json: found a list, expected an object");
}

// --- refusals -------------------------------------------------------------------------------------------------------

struct Refusal {
  const char* name;
  const char* patch;
  Code code;
  std::string message;  // without the origin
};

class DrafterRefusal : public testing::TestWithParam<Refusal> {};

TEST_P(DrafterRefusal, NamesKeyFoundAndExpected) {
  const auto config = read(GetParam().patch);
  ASSERT_FALSE(config.ok());
  EXPECT_EQ(config.error().message, "config.json: " + GetParam().message);
  EXPECT_EQ(config.error().code, GetParam().code);
}

std::string name_of(const testing::TestParamInfo<Refusal>& refusal) { return refusal.param.name; }

Refusal other_kind(const char* name, const char* patch, const std::string& found, const std::string& kind) {
  return {name, patch, Code::unsupported,
          "key " + found + ", expected a plain DFlash drafter of architecture [\"DFlashDraftModel\"]; this is " + kind};
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, DrafterRefusal,
    testing::Values(
        other_kind("dflash2", R"({"architectures": ["DFlash2DraftModel"]})",
                   R"('architectures' is ["DFlash2DraftModel"])", "a DFlash2 drafter"),
        other_kind("dspark", R"({"architectures": ["DSparkDraftModel"]})", R"('architectures' is ["DSparkDraftModel"])",
                   "a DSpark drafter"),
        other_kind("deepspec", R"({"architectures": ["Qwen3DSparkModel"], "markov_rank": 0})",
                   R"('architectures' is ["Qwen3DSparkModel"])", "a DSpark drafter"),
        other_kind("gemma4", R"({"architectures": ["Gemma4DSparkModel"]})",
                   R"('architectures' is ["Gemma4DSparkModel"])", "the Gemma 4 variant of DSpark"),
        other_kind("lfm2", R"({"architectures": ["Lfm2DSparkDraftModel"]})",
                   R"('architectures' is ["Lfm2DSparkDraftModel"])", "the LFM2 variant of DSpark"),
        other_kind("k3", R"({"architectures": ["K3DSparkModel"]})", R"('architectures' is ["K3DSparkModel"])",
                   "the Kimi K3 variant of DSpark"),
        other_kind("domino", R"({"architectures": ["DominoDraftModel"]})", R"('architectures' is ["DominoDraftModel"])",
                   "a Domino drafter"),
        other_kind("muse", R"({"architectures": ["MuseGlimmerAssistantModel"]})",
                   R"('architectures' is ["MuseGlimmerAssistantModel"])",
                   "the Muse Glimmer assistant, a vendor variant of DFlash"),
        other_kind("laguna", R"({"architectures": ["DFlashLagunaForCausalLM"]})",
                   R"('architectures' is ["DFlashLagunaForCausalLM"])", "the Laguna variant of DFlash"),
        other_kind("dflash_speculator", R"({"architectures": ["DFlashSpeculator"]})",
                   R"('architectures' is ["DFlashSpeculator"])", "a drafter in speculators format"),
        other_kind("dspark_speculator", R"({"architectures": ["DSparkSpeculator"]})",
                   R"('architectures' is ["DSparkSpeculator"])", "a drafter in speculators format"),
        other_kind("speculators_type", R"({"speculators_model_type": "dflash"})",
                   R"('speculators_model_type' is "dflash")", "a drafter in speculators format"),
        other_kind("speculators_config", R"({"speculators_config": {"algorithm": "dflash"}})",
                   "'speculators_config' is an object", "a drafter in speculators format"),
        other_kind("target", R"({"architectures": ["Qwen3ForCausalLM"]})", R"('architectures' is ["Qwen3ForCausalLM"])",
                   "no architecture of a known drafter"),
        other_kind("empty", R"({"architectures": []})", "'architectures' is []", "no architecture of a known drafter"),
        // Exports of Domino carry DFlash's architecture, so the projector is looked at first.
        other_kind("domino_projector", R"({"dflash_config": {"projector_type": "domino", "shift_label": true}})",
                   R"('dflash_config.projector_type' is "domino")", "a Domino drafter"),
        other_kind("dspark_projector", R"({"projector_type": "dspark"})", R"('projector_type' is "dspark")",
                   "a DSpark drafter"),
        other_kind("other_projector", R"({"projector_type": "mlp"})", R"('projector_type' is "mlp")",
                   "a projector type that is not known"),
        Refusal{"no_architecture", R"({"architectures": null})", Code::not_found,
                R"(key 'architectures' is missing, expected ["DFlashDraftModel"])"},
        Refusal{"model_type", R"({"model_type": "llama"})", Code::unsupported,
                R"(key 'model_type' is "llama", expected "qwen3", whose layers every published drafter has)"}),
    name_of);

Refusal foreign(const char* name, const char* patch, const std::string& found, const std::string& neutral,
                const std::string& kind) {
  return {name, patch, Code::unsupported,
          "key " + found + ", expected " + neutral + " or no such key in a plain DFlash drafter; this is " + kind};
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
                    foreign("sample_from_anchor", R"({"sample_from_anchor": true})", "'sample_from_anchor' is true",
                            "0, false", "a block in shifted layout"),
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
                    Refusal{"v_head_dim", R"({"v_head_dim": 64})", Code::unsupported,
                            "key 'v_head_dim' is 64, expected head_dim 128"}),
    name_of);

constexpr Code kCorrupt = Code::corrupt_file;

INSTANTIATE_TEST_SUITE_P(
    Values, DrafterRefusal,
    testing::Values(
        Refusal{"no_block_size", R"({"block_size": null})", Code::not_found,
                "key 'block_size' is missing, expected an integer of at least 2, at the top level or in dflash_config"},
        Refusal{"block_of_one", R"({"block_size": 1})", Code::unsupported,
                "key 'block_size' is 1, expected at least 2: a block of 1 has no drafts"},
        Refusal{"block_of_none", R"({"dflash_config": {"block_size": 0}, "block_size": null})", kCorrupt,
                "key 'dflash_config.block_size' is 0, expected an integer from 1 to 1024"},
        Refusal{"block_text", R"({"block_size": "16"})", kCorrupt,
                R"(key 'block_size' is "16", expected an integer from 1 to 1024)"},
        Refusal{"no_mask", R"({"dflash_config": {"mask_token_id": null}})", Code::not_found,
                "key 'mask_token_id' is missing, expected an id below vocab_size 151936, at the top level or in "
                "dflash_config"},
        Refusal{"mask_outside", R"({"dflash_config": {"mask_token_id": 151936}})", kCorrupt,
                "key 'dflash_config.mask_token_id' is 151936, expected an integer from 0 to 151935"},
        Refusal{"mask_negative", R"({"dflash_config": {"mask_token_id": -1}})", kCorrupt,
                "key 'dflash_config.mask_token_id' is -1, expected an integer from 0 to 151935"},
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
                "num_hidden_layers 2 give, [1, -1], is not one"},
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
        Refusal{"activation", R"({"hidden_act": "gelu"})", Code::unsupported,
                R"(key 'hidden_act' is "gelu", expected "silu")"}),
    name_of);

INSTANTIATE_TEST_SUITE_P(
    Layers, DrafterRefusal,
    testing::Values(
        Refusal{
            "count", R"({"layer_types": ["full_attention"]})", kCorrupt,
            R"(key 'layer_types' is ["full_attention"], expected one entry for each of num_hidden_layers 5, not 1)"},
        Refusal{"text", R"({"layer_types": "full_attention"})", kCorrupt,
                R"(key 'layer_types' is "full_attention", expected a list of strings)"},
        Refusal{"other_type", R"({"num_hidden_layers": 2, "layer_types": ["full_attention", "linear_attention"]})",
                Code::unsupported,
                R"(key 'layer_types[1]' is "linear_attention", expected "full_attention" or "sliding_attention")"},
        Refusal{"no_window", "{" TWO_SLIDE R"("sliding_window": null})", Code::not_found,
                "key 'sliding_window' is missing, expected an integer from 1 to 2147483647"},
        Refusal{"window_zero", "{" TWO_SLIDE R"("sliding_window": 0})", kCorrupt,
                "key 'sliding_window' is 0, expected an integer from 1 to 2147483647"},
        Refusal{"switch_text", "{" TWO_SLIDE R"("sliding_window": 8, "use_sliding_window": "no"})", kCorrupt,
                R"(key 'use_sliding_window' is "no", expected true or false)"},
        Refusal{"is_causal_text", R"({"is_causal": "false"})", kCorrupt,
                R"(key 'is_causal' is "false", expected true or false)"},
        Refusal{"causal_number", R"({"dflash_config": {"causal": 1}})", kCorrupt,
                "key 'dflash_config.causal' is 1, expected true or false"},
        Refusal{"is_causal_nested", R"({"dflash_config": {"is_causal": false}})", kCorrupt,
                "key 'dflash_config.is_causal' is false, expected that key at the top level"},
        Refusal{"causal_on_top", R"({"causal": false})", kCorrupt,
                "key 'causal' is false, expected that key in dflash_config, or is_causal"},
        Refusal{"causal_in_dspark", R"({"dspark_config": {"causal": false}})", kCorrupt,
                "key 'dspark_config.causal' is false, expected that key in dflash_config"},
        Refusal{"swa_without_window", R"({"layer_types": null, "use_sliding_window": null, "use_swa": true})",
                Code::not_found, "key 'swa_window_size' is missing, expected a window, as 'use_swa' is true"},
        Refusal{"swa_window_zero", R"({"layer_types": null, "use_sliding_window": null, "use_swa": true,
                                       "swa_window_size": 0})",
                kCorrupt, "key 'swa_window_size' is 0, expected an integer from 1 to 2147483647"},
        Refusal{"swa_switched_off", R"({"layer_types": null, "use_swa": true, "swa_window_size": 8})", kCorrupt,
                "key 'use_swa' is true, expected false, as use_sliding_window is"}),
    name_of);

}  // namespace
}  // namespace blockdraft
