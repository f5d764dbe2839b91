#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "draft/drafter_config.h"
#include "support/drafter_examples.h"
#include "support/expect_error.h"
#include "support/temp_dir.h"

namespace blockdraft {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::IsEmpty;

const std::filesystem::path kSource = BLOCKDRAFT_SOURCE_DIR;

TEST(DrafterConfig, ReadsQwen3Of4B) {
  const DrafterConfig config = read_ok("{}");
  EXPECT_EQ(config.architecture, "DFlashDraftModel");
  EXPECT_EQ(config.family, DrafterFamily::dflash);
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
  const DrafterConfig config = accepted(gpt_oss_20b());
  EXPECT_EQ(config.layers.size(), 8u);
  EXPECT_EQ(config.target_layer_ids.size(), 5u);
  EXPECT_TRUE(config.transformer.attention_bias);
  EXPECT_EQ(config.transformer.query_size(), 4096);
  EXPECT_EQ(config.transformer.rope.type, RopeType::yarn);
  EXPECT_DOUBLE_EQ(config.transformer.rope.attention_factor, 1.3465735902799727);
  EXPECT_EQ(config.trained_width(), 7);
}

// Its files leave out what all of them share.
TEST(DrafterConfig, ReadsTheMuseAssistant) {
  const DrafterConfig config = accepted(muse_assistant());
  EXPECT_EQ(config.family, DrafterFamily::dflash);
  EXPECT_EQ(config.layout, BlockLayout::in_place);
  EXPECT_EQ(config.trained_width(), 15);
  EXPECT_EQ(config.mask_token_id, 201818);
  EXPECT_EQ(config.transformer.vocab_size, 202048);
  EXPECT_THAT(config.target_layer_ids, ElementsAre(1, 13, 25, 37, 49));
  EXPECT_THAT(windows(config), Each(2048));
  EXPECT_EQ(causality(config), std::vector<bool>(5, false));
  EXPECT_EQ(config.largest_window(), 2048);
  EXPECT_THAT(config.warnings, ElementsAre("config.json: no vocab_size; 202048 is used, that of every Muse Glimmer "
                                           "assistant"));
  const DrafterConfig stated = accepted(muse_assistant(), R"({"vocab_size": 202112, "is_causal": true})");
  EXPECT_EQ(stated.transformer.vocab_size, 202112);
  EXPECT_EQ(causality(stated), std::vector<bool>(5, true));
  EXPECT_THAT(stated.warnings, IsEmpty());
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

TEST(RealFiles, TheMiMoExampleIsRefusedByName) {
  expect_refused(mimo(), "{}", Code::unsupported,
                 "key 'dflash_config.attention_value_scale' is 0.612, expected 1 or no such key in a plain DFlash "
                 "drafter; it belongs to the MiMo variant of DFlash");
}

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

// Its other half: a vector of its own for the mask rows, in a file beside.
TEST(RealFiles, AMaskEmbeddingIsRefusedByName) {
  const TempDir folder;
  write_file(folder / "config.json", qwen3_4b().dump());
  EXPECT_TRUE(read_drafter_config(folder.path()).ok());
  write_file(folder / "mask_embedding.pt", "");
  expect_error(read_drafter_config(folder.path()), Code::unsupported, {"mask_embedding.pt", "MiMo variant of DFlash"});
}

TEST(RealFiles, MissingFolderAndWrongDocument) {
  EXPECT_EQ(read_drafter_config(kSource / "demo/no-such-folder").error().code, Code::not_found);
  const auto list = read_drafter_config(Json::parse("[]"), "config.json");
  ASSERT_FALSE(list.ok());
  EXPECT_EQ(list.error().code, Code::corrupt_file);
  EXPECT_EQ(list.error().message, "config.json: found a list, expected an object");
}

}  // namespace
}  // namespace blockdraft
