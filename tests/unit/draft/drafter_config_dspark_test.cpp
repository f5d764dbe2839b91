#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "draft/drafter_config.h"
#include "draft/pairing.h"
#include "support/drafter_examples.h"

namespace blockdraft {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

void expect_qwen3_4b(const DrafterConfig& config) {
  EXPECT_EQ(config.family, DrafterFamily::dspark);
  EXPECT_EQ(config.layout, BlockLayout::shifted);
  EXPECT_EQ(config.block_size, 7);
  EXPECT_EQ(config.trained_width(), 7);
  EXPECT_EQ(config.mask_token_id, 151669);
  EXPECT_THAT(config.target_layer_ids, ElementsAre(1, 9, 17, 25, 33));
  EXPECT_EQ(config.dspark.markov_rank, 256);
  EXPECT_EQ(config.dspark.markov_head_type, MarkovHeadType::vanilla);
  EXPECT_TRUE(config.dspark.enable_confidence_head);
  EXPECT_TRUE(config.dspark.confidence_head_with_markov);
  EXPECT_EQ(slides(config), std::vector<bool>(5, false));
  EXPECT_EQ(causality(config), std::vector<bool>(5, false));
  EXPECT_EQ(windows(config), std::vector<int32_t>(5, 0));
  EXPECT_THAT(config.warnings, IsEmpty());
}

TEST(DsparkDrafterConfig, ReadsSpecForge) {
  expect_qwen3_4b(accepted(qwen3_4b_dspark()));
  EXPECT_EQ(accepted(qwen3_4b_dspark()).architecture, "DSparkDraftModel");
  expect_qwen3_4b(accepted(qwen3_4b_dspark(), R"({"dflash_config": {"projector_type": null}})"));
}

TEST(DsparkDrafterConfig, ReadsDeepSpecAndItsLeftovers) {
  expect_qwen3_4b(accepted(qwen3_4b_deepspec()));
  expect_qwen3_4b(accepted(qwen3_4b_deepspec(), R"({"sliding_window": null, "use_sliding_window": true})"));
}

// SpecForge's normalised exports: DeepSpec's architecture, or DFlash's, which the projector type tells apart.
TEST(DsparkDrafterConfig, ReadsExports) {
  expect_qwen3_4b(accepted(qwen3_4b_dspark(), R"({"architectures": ["Qwen3DSparkModel"]})"));
  expect_qwen3_4b(accepted(qwen3_4b_dspark(), R"({"architectures": ["DFlashDraftModel"]})"));
}

TEST(DsparkDrafterConfig, EveryPlaceOfItsKeys) {
  for (const std::string place : {"/dspark_", "/dflash_config/", "/dspark_config/", "/"}) {
    Json document = patched(qwen3_4b_dspark(), R"({"dflash_config": {"markov_rank": null, "markov_head_type": null,
        "enable_confidence_head": null, "confidence_head_alpha": null, "confidence_head_with_markov": null}})");
    document[Json::json_pointer(place + "markov_rank")] = 64;
    document[Json::json_pointer(place + "markov_head_type")] = "RNN";
    document[Json::json_pointer(place + "enable_confidence_head")] = true;
    document[Json::json_pointer(place + "confidence_head_with_markov")] = true;
    const DrafterConfig config = accepted(document);
    EXPECT_EQ(config.dspark.markov_rank, 64) << place;
    EXPECT_EQ(config.dspark.markov_head_type, MarkovHeadType::rnn) << place;
    EXPECT_TRUE(config.dspark.enable_confidence_head) << place;
    EXPECT_TRUE(config.dspark.confidence_head_with_markov) << place;
    EXPECT_THAT(config.warnings, IsEmpty()) << place;
  }
}

// DeepSpec's own "dflash" baselines: no heads, and shifted all the same.
TEST(DsparkDrafterConfig, WithoutHeadsTheBlockIsShiftedToo) {
  const DrafterConfig config =
      accepted(qwen3_4b_deepspec(),
               R"({"markov_rank": 0, "enable_confidence_head": false, "confidence_head_with_markov": true})");
  EXPECT_EQ(config.family, DrafterFamily::dspark);
  EXPECT_EQ(config.layout, BlockLayout::shifted);
  EXPECT_EQ(config.dspark.markov_rank, 0);
  EXPECT_FALSE(config.dspark.enable_confidence_head);
  EXPECT_FALSE(config.dspark.confidence_head_with_markov);
}

TEST(DsparkDrafterConfig, DefaultsOfSpecForge) {
  const Json bare = patched(qwen3_4b_dspark(), R"({"dflash_config": {"markov_rank": null, "markov_head_type": null,
      "enable_confidence_head": null, "confidence_head_alpha": null, "confidence_head_with_markov": null}})");
  const DrafterConfig config = accepted(bare);
  EXPECT_EQ(config.dspark.markov_rank, 0);
  EXPECT_EQ(config.dspark.markov_head_type, MarkovHeadType::vanilla);
  EXPECT_FALSE(config.dspark.enable_confidence_head);
  const DrafterConfig weighted = accepted(bare, R"({"dflash_config": {"confidence_head_alpha": 0.5}})");
  EXPECT_TRUE(weighted.dspark.enable_confidence_head);
  EXPECT_FALSE(weighted.dspark.confidence_head_with_markov);
  EXPECT_FALSE(accepted(bare, R"({"confidence_head_alpha": 0.0})").dspark.enable_confidence_head);
}

TEST(DsparkDrafterConfig, ABlockOfOneRowHasOneDraft) {
  EXPECT_EQ(accepted(qwen3_4b_dspark(), R"({"block_size": 1})").trained_width(), 1);
}

TEST(DsparkDrafterConfig, LayersMayStartAtTheEmbeddings) {
  const DrafterConfig config = accepted(qwen3_4b_deepspec(), R"({"target_layer_ids": [-1, 17, 35]})");
  EXPECT_THAT(config.target_layer_ids, ElementsAre(-1, 17, 35));
  const TargetFacts target{.hidden_size = 2560, .num_hidden_layers = 36, .vocab_size = 151936, .num_choices = 151669};
  EXPECT_TRUE(require_pairing(config, target).ok());
  for (const PairingCheck& check : check_pairing(config, target)) {
    if (check.name != "target layer ids") continue;
    EXPECT_EQ(check.target, "-1 (the embeddings) to 35");
    EXPECT_EQ(check.drafter, "-1, 17, 35");
  }
}

TEST(DsparkDrafterConfig, GoldenFixtures) {
  struct Fixture {
    const char* name;
    int32_t rank;
    MarkovHeadType type;
    bool confidence, with_markov;
    std::vector<int32_t> layer_ids;
  };
  const std::vector<Fixture> fixtures = {
      {"dspark_vanilla_nested", 32, MarkovHeadType::vanilla, true, true, {1, 3, 4}},
      {"dspark_gated_flat", 32, MarkovHeadType::gated, true, true, {1, 3, 4}},
      {"dspark_rnn_flat", 32, MarkovHeadType::rnn, true, false, {1, 3, 4}},
      {"dspark_no_markov", 0, MarkovHeadType::vanilla, false, false, {-1, 2, 4}},
  };
  for (const Fixture& fixture : fixtures) {
    SCOPED_TRACE(fixture.name);
    const DrafterConfig config = read_golden(fixture.name);
    EXPECT_EQ(config.family, DrafterFamily::dspark);
    EXPECT_EQ(config.layout, BlockLayout::shifted);
    EXPECT_EQ(config.trained_width(), 7);
    EXPECT_EQ(config.dspark.markov_rank, fixture.rank);
    EXPECT_EQ(config.dspark.markov_head_type, fixture.type);
    EXPECT_EQ(config.dspark.enable_confidence_head, fixture.confidence);
    EXPECT_EQ(config.dspark.confidence_head_with_markov, fixture.with_markov);
    EXPECT_EQ(config.target_layer_ids, fixture.layer_ids);
    EXPECT_THAT(config.warnings, IsEmpty());
  }
}

TEST(DsparkDrafterConfig, Demo) {
  const DrafterConfig config = read_folder("demo/pycode-14m-dspark");
  EXPECT_EQ(config.family, DrafterFamily::dspark);
  EXPECT_EQ(config.trained_width(), 7);
  EXPECT_EQ(config.dspark.markov_rank, 64);
  EXPECT_TRUE(config.dspark.confidence_head_with_markov);
  EXPECT_THAT(config.warnings, IsEmpty());
}

TEST(DsparkDrafterConfig, DeepSpecSaysEverything) {
  const auto absent = [](const std::string& key, const std::string& expected) {
    const std::string patch = R"({")" + key + R"(": null})";
    expect_refused(qwen3_4b_deepspec(), patch.c_str(), Code::not_found,
                   "key '" + key + "' is missing, expected " + expected);
  };
  absent("markov_rank", "an integer of at least 0 with architecture Qwen3DSparkModel");
  absent("enable_confidence_head", "true or false with architecture Qwen3DSparkModel");
  absent("confidence_head_with_markov", "true or false with architecture Qwen3DSparkModel");
  absent("target_layer_ids", "a list of target layers");
}

TEST(DsparkDrafterConfig, Refusals) {
  const auto deepspec = [](const char* patch, Code code, const std::string& message) {
    expect_refused(qwen3_4b_deepspec(), patch, code, message);
  };
  deepspec(R"({"target_layer_ids": [9, 1]})", Code::corrupt_file,
           "key 'target_layer_ids' is [9, 1], expected increasing layers with architecture Qwen3DSparkModel");
  deepspec(R"({"target_layer_ids": [-2, 1]})", Code::corrupt_file,
           "key 'target_layer_ids[0]' is -2, expected an integer from -1 to 35");
  deepspec(R"({"num_hidden_layers": 2, "layer_types": ["full_attention", "sliding_attention"]})", Code::unsupported,
           R"(key 'layer_types[1]' is "sliding_attention", expected "full_attention", the only type with )"
           "architecture Qwen3DSparkModel");
  deepspec(R"({"markov_rank": 0})", Code::corrupt_file,
           "key 'confidence_head_with_markov' is true, expected false, as markov_rank is 0");
  deepspec(R"({"markov_rank": -1})", Code::corrupt_file,
           "key 'markov_rank' is -1, expected an integer from 0 to 16777216");
  deepspec(R"({"markov_head_type": "Bilinear"})", Code::unsupported,
           R"(key 'markov_head_type' is "Bilinear", expected "vanilla", "gated" or "rnn")");
  deepspec(R"({"enable_confidence_head": 1})", Code::corrupt_file,
           "key 'enable_confidence_head' is 1, expected true or false");
  deepspec(R"({"conv_kernel_size": 2})", Code::unsupported,
           "key 'conv_kernel_size' is 2, expected 0, false or no such key in a DSpark drafter; it belongs to a DFlash2 "
           "drafter");
  deepspec(R"({"sample_from_anchor": false})", Code::unsupported,
           "key 'sample_from_anchor' is false, expected true or no such key in a DSpark drafter, whose block is "
           "shifted");
  deepspec(R"({"projector_type": "dflash"})", Code::unsupported,
           R"(key 'projector_type' is "dflash", expected "dspark" or no such key with architecture Qwen3DSparkModel)");
}

// Other training codes have no order of layers.
TEST(DsparkDrafterConfig, SpecForgeLayersNeedNoOrder) {
  EXPECT_THAT(accepted(qwen3_4b_dspark(), R"({"dflash_config": {"target_layer_ids": [9, 1]}})").target_layer_ids,
              ElementsAre(9, 1));
}

}  // namespace
}  // namespace blockdraft
