#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "draft/drafter_config.h"
#include "support/drafter_examples.h"

namespace blockdraft {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(SpeculatorsConfig, ReadsDFlash) {
  const DrafterConfig config = accepted(qwen3_4b_speculators());
  EXPECT_EQ(config.architecture, "DFlashSpeculator");
  EXPECT_EQ(config.family, DrafterFamily::dflash);
  EXPECT_EQ(config.layout, BlockLayout::in_place);
  EXPECT_EQ(config.trained_width(), 7);
  EXPECT_THAT(config.target_layer_ids, ElementsAre(1, 9, 17, 25, 33));
  EXPECT_EQ(config.num_target_layers, std::nullopt);
  EXPECT_EQ(config.transformer.hidden_size, 2560);
  EXPECT_EQ(config.transformer.num_hidden_layers, 3);
  EXPECT_EQ(config.transformer.rope.rope_theta, 1e6);
  EXPECT_EQ(config.target_hidden_size, 2560);
  EXPECT_EQ(config.draft_vocab_size, 32000);
  EXPECT_THAT(slides(config), ElementsAre(true, false, false));
  EXPECT_THAT(causality(config), ElementsAre(true, false, false));
  EXPECT_THAT(windows(config), ElementsAre(2048, 0, 0));
  EXPECT_THAT(config.warnings, IsEmpty());
}

TEST(SpeculatorsConfig, ReadsDSpark) {
  const DrafterConfig config = accepted(speculators_dspark());
  EXPECT_EQ(config.family, DrafterFamily::dspark);
  EXPECT_EQ(config.layout, BlockLayout::shifted);
  EXPECT_EQ(config.trained_width(), 8);
  EXPECT_EQ(config.dspark.markov_rank, 64);
  EXPECT_EQ(config.dspark.markov_head_type, MarkovHeadType::gated);
  EXPECT_TRUE(config.dspark.enable_confidence_head);
  EXPECT_FALSE(config.dspark.confidence_head_with_markov);
  EXPECT_THAT(config.warnings, IsEmpty());
}

TEST(SpeculatorsConfig, ReadsDFlash2) {
  for (const char* patch : {"{}", R"({"architectures": ["DFlashSpeculator"]})"}) {
    const DrafterConfig config = accepted(speculators_dflash2(), patch);
    EXPECT_EQ(config.family, DrafterFamily::dflash2);
    EXPECT_EQ(config.layout, BlockLayout::in_place);
    EXPECT_EQ(config.dflash2.conv_group_size, 16);
    EXPECT_EQ(config.dflash2.selector_rank, 256);
    EXPECT_THAT(config.warnings, IsEmpty());
  }
}

TEST(SpeculatorsConfig, CausalityOfSlidingLayers) {
  const auto sliding_is_causal = [](const Json& document, const char* patch) -> bool {
    return causality(accepted(document, patch)).front();
  };
  EXPECT_TRUE(sliding_is_causal(qwen3_4b_speculators(), R"({"sliding_window_non_causal": null})"));
  EXPECT_FALSE(sliding_is_causal(qwen3_4b_speculators(), R"({"sliding_window_non_causal": true})"));
  EXPECT_TRUE(sliding_is_causal(speculators_dspark(), "{}"));
  EXPECT_FALSE(sliding_is_causal(speculators_dflash2(), "{}"));  // that format's default
  EXPECT_TRUE(sliding_is_causal(speculators_dflash2(), R"({"sliding_window_non_causal": false})"));
}

TEST(SpeculatorsConfig, DefaultsOfDSpark) {
  const DrafterConfig config = accepted(speculators_dspark(), R"({"markov_rank": null, "markov_head_type": null,
      "enable_confidence_head": null, "confidence_head_with_markov": null})");
  EXPECT_EQ(config.dspark.markov_rank, 256);
  EXPECT_EQ(config.dspark.markov_head_type, MarkovHeadType::vanilla);
  EXPECT_TRUE(config.dspark.enable_confidence_head);
  EXPECT_TRUE(config.dspark.confidence_head_with_markov);
}

TEST(SpeculatorsConfig, ANarrowerTargetAndTheEmbeddings) {
  const DrafterConfig config = accepted(speculators_dspark(), R"({"target_hidden_size": 2048,
      "aux_hidden_state_layer_ids": [0, 36, 2]})");
  EXPECT_EQ(config.target_hidden_size, 2048);
  EXPECT_THAT(config.target_layer_ids, ElementsAre(-1, 35, 1));
}

TEST(SpeculatorsConfig, ItsOwnKeyOfLayersWins) {
  const DrafterConfig config = accepted(qwen3_4b_speculators(), R"({"target_layer_ids": [2, 10]})");
  EXPECT_THAT(config.target_layer_ids, ElementsAre(1, 9, 17, 25, 33));
  EXPECT_THAT(config.warnings, ElementsAre("config.json: key 'aux_hidden_state_layer_ids' is [2, 10, 18, 26, 34] but "
                                           "'target_layer_ids' is [2, 10]; the first is used"));
}

// Of the transformer's keys those in transformer_layer_config count, and whoever edits others hears of it.
TEST(SpeculatorsConfig, CopiesBesideTheLayersDoNotCount) {
  const DrafterConfig config =
      accepted(qwen3_4b_speculators(), R"({"vocab_size": 151000, "hidden_size": 2560, "rope_theta": 10000000,
                                           "transformer_layer_config": {"use_sliding_window": null},
                                           "use_sliding_window": false})");
  EXPECT_EQ(config.transformer.vocab_size, 151936);
  EXPECT_EQ(config.transformer.rope.rope_theta, 1e6);
  EXPECT_THAT(
      config.warnings,
      ElementsAre("config.json: key 'transformer_layer_config.vocab_size' is 151936 but 'vocab_size' is 151000; "
                  "the first is used",
                  "config.json: key 'transformer_layer_config.rope_theta' is 1000000 but 'rope_theta' is "
                  "10000000; the first is used",
                  "config.json: key 'use_sliding_window' is false; it is looked for in transformer_layer_config "
                  "and not used"));
}

// [2, N / 2, N - 3] of the format, counted from the embeddings.
TEST(SpeculatorsConfig, LayersAreComputedWithAWarning) {
  const DrafterConfig config =
      accepted(qwen3_4b_speculators(), R"({"aux_hidden_state_layer_ids": null, "num_target_layers": 36})");
  EXPECT_TRUE(config.target_layer_ids_computed);
  EXPECT_THAT(config.target_layer_ids, ElementsAre(1, 17, 32));
  EXPECT_THAT(config.warnings, ElementsAre("config.json: no aux_hidden_state_layer_ids; outputs of layers [1, 17, 32] "
                                           "computed from num_target_layers 36"));
}

TEST(SpeculatorsConfig, WithoutSampleFromAnchorInPlaceWithAWarning) {
  for (const Json& document : {qwen3_4b_speculators(), speculators_dspark(), speculators_dflash2()}) {
    const DrafterConfig config = accepted(document, R"({"sample_from_anchor": null})");
    EXPECT_EQ(config.layout, BlockLayout::in_place);
    EXPECT_THAT(config.warnings, ElementsAre("config.json: no sample_from_anchor; the block is taken to be in place, "
                                             "as before there was that key"));
  }
}

TEST(LayoutOverride, FieldFault2_SettlesWhatTheFileLeavesOpen) {
  const Json document = patched(speculators_dspark(), R"({"sample_from_anchor": null})");
  for (const BlockLayout layout : {BlockLayout::in_place, BlockLayout::shifted}) {
    const DrafterConfig config = value_of(read_drafter_config(document, "config.json", layout));
    EXPECT_EQ(config.layout, layout);
    EXPECT_THAT(config.warnings, IsEmpty());
  }
}

TEST(LayoutOverride, OfWhatTheFileSaysIsFollowedWithAWarning) {
  const DrafterConfig shifted = value_of(read_drafter_config(qwen3_4b(), "config.json", BlockLayout::shifted));
  EXPECT_EQ(shifted.layout, BlockLayout::shifted);
  EXPECT_EQ(shifted.trained_width(), 16);
  EXPECT_THAT(shifted.warnings, ElementsAre("config.json: the block is in place by the config but shifted is asked "
                                            "for; the second is used"));
  const DrafterConfig in_place =
      value_of(read_drafter_config(speculators_dspark(), "config.json", BlockLayout::in_place));
  EXPECT_EQ(in_place.layout, BlockLayout::in_place);
  EXPECT_THAT(in_place.warnings, ElementsAre("config.json: the block is shifted by the config but in place is asked "
                                             "for; the second is used"));
  EXPECT_THAT(value_of(read_drafter_config(qwen3_4b(), "config.json", BlockLayout::in_place)).warnings, IsEmpty());
}

TEST(SpeculatorsConfig, Refusals) {
  const auto refused = [](const char* patch, Code code, const std::string& message) {
    expect_refused(qwen3_4b_speculators(), patch, code, message);
  };
  refused(R"({"speculators_model_type": null})", Code::not_found,
          R"(key 'speculators_model_type' is missing, expected "dflash", "dspark" or "dflash2")");
  refused(R"({"speculators_model_type": "eagle3"})", Code::unsupported,
          R"(key 'speculators_model_type' is "eagle3", expected "dflash", "dspark" or "dflash2")");
  refused(R"({"architectures": ["DSparkSpeculator"]})", Code::unsupported,
          R"(key 'architectures' is ["DSparkSpeculator"], expected the architecture that goes with )"
          R"(speculators_model_type "dflash")");
  refused(R"({"transformer_layer_config": null})", Code::not_found,
          "key 'transformer_layer_config' is missing, expected an object with the keys of the drafter's layers");
  refused(R"({"transformer_layer_config": [1]})", Code::corrupt_file,
          "key 'transformer_layer_config' is [1], expected an object");
  refused(R"({"transformer_layer_config": {"model_type": "llama"}})", Code::unsupported,
          R"(key 'transformer_layer_config.model_type' is "llama", expected "qwen3", whose layers every published )"
          "drafter has");
  refused(R"({"transformer_layer_config": {"hidden_act": "gelu"}})", Code::unsupported,
          R"(key 'transformer_layer_config.hidden_act' is "gelu", expected "silu")");
  refused(R"({"transformer_layer_config": {"gating": "per-head"}})", Code::unsupported,
          R"(key 'transformer_layer_config.gating' is "per-head", expected 0, false or no such key in a plain DFlash )"
          "drafter; it belongs to the Laguna variant of DFlash");
  refused(R"({"transformer_layer_config": {"is_causal": false}})", Code::corrupt_file,
          "key 'transformer_layer_config.is_causal' is false, expected that key at the top level");
  refused(
      R"({"projector_type": "domino"})", Code::unsupported,
      R"(key 'projector_type' is "domino", expected a DFlash, DFlash2 or DSpark drafter; this is a Domino drafter)");
  refused(R"({"conv_kernel_size": 2})", Code::unsupported,
          "key 'conv_kernel_size' is 2, expected 0, false or no such key in a plain DFlash drafter; it belongs to a "
          "DFlash2 drafter");
  refused(R"({"mask_token_id": null})", Code::not_found,
          "key 'mask_token_id' is missing, expected an id below vocab_size 151936, at the top level or in "
          "dflash_config");
  refused(R"({"aux_hidden_state_layer_ids": null})", Code::not_found,
          "key 'aux_hidden_state_layer_ids' is missing, expected a list of target layers, or num_target_layers to "
          "compute it from");
  refused(R"({"aux_hidden_state_layer_ids": null, "num_target_layers": 6})", Code::not_found,
          "key 'aux_hidden_state_layer_ids' is missing, expected a list of target layers: what num_target_layers 6 "
          "gives, [1, 2, 2], is not one");
  refused(R"({"aux_hidden_state_layer_ids": [0, 2]})", Code::corrupt_file,
          "key 'aux_hidden_state_layer_ids[0]' is 0, expected an integer from 1 to 4096");
  refused(R"({"sample_from_anchor": "yes"})", Code::corrupt_file,
          R"(key 'sample_from_anchor' is "yes", expected true or false)");
  expect_refused(speculators_dspark(), R"({"markov_rank": 0, "confidence_head_with_markov": null})", Code::not_found,
                 "key 'confidence_head_with_markov' is missing, expected false, as markov_rank is 0");
  expect_refused(speculators_dflash2(), R"({"selector_rank": null})", Code::not_found,
                 "key 'selector_rank' is missing, expected a positive integer, at the top level or in dflash_config");
}

TEST(SpeculatorsConfig, TheArchitectureAloneNamesTheFormat) {
  for (const char* patch : {R"({"architectures": ["DFlashSpeculator"]})", R"({"architectures": ["DSparkSpeculator"]})",
                            R"({"speculators_config": {"algorithm": "dflash"}})"}) {
    expect_refused(qwen3_4b(), patch, Code::not_found,
                   R"(key 'speculators_model_type' is missing, expected "dflash", "dspark" or "dflash2")");
  }
}

}  // namespace
}  // namespace blockdraft
