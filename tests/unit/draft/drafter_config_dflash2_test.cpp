#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "draft/drafter_config.h"
#include "support/drafter_examples.h"

namespace blockdraft {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::IsEmpty;

TEST(Dflash2DrafterConfig, ReadsQwen38Of27B) {
  const DrafterConfig config = accepted(qwen38_27b_dflash2());
  EXPECT_EQ(config.architecture, "DFlash2DraftModel");
  EXPECT_EQ(config.family, DrafterFamily::dflash2);
  EXPECT_EQ(config.layout, BlockLayout::in_place);
  EXPECT_EQ(config.block_size, 8);
  EXPECT_EQ(config.trained_width(), 7);
  EXPECT_EQ(config.dflash2.conv_kernel_size, 2);
  EXPECT_EQ(config.dflash2.conv_group_size, 16);
  EXPECT_EQ(config.dflash2.selector_rank, 256);
  EXPECT_EQ(config.dflash2.selector_top_k, 16);
  EXPECT_THAT(config.target_layer_ids, ElementsAre(5, 19, 33, 47, 61));
  EXPECT_EQ(slides(config), std::vector<bool>(5, true));
  EXPECT_EQ(causality(config), std::vector<bool>(5, false));
  EXPECT_THAT(windows(config), Each(2048));
  EXPECT_EQ(config.mask_token_id, 248070);
  EXPECT_EQ(config.transformer.rope.rope_theta, 1e7);
  EXPECT_EQ(config.input_embedding_scale, std::nullopt);
  EXPECT_THAT(config.warnings, IsEmpty());
}

TEST(Dflash2DrafterConfig, ReadsMuseOf30B) {
  const DrafterConfig config = accepted(muse_30b_dflash2());
  EXPECT_EQ(config.block_size, 16);
  EXPECT_EQ(config.output_multiplier, 0.19611613513818404f);
  EXPECT_EQ(config.final_logit_softcapping, 20.0f);
  EXPECT_EQ(config.transformer.hidden_size, 6656);
  EXPECT_EQ(config.transformer.rms_norm_eps, 1e-5);
  EXPECT_EQ(config.transformer.vocab_size, 202048);
  EXPECT_EQ(config.transformer.rope.rope_theta, 5e5);
  EXPECT_THAT(config.target_layer_ids, ElementsAre(1, 13, 25, 37, 49));
  EXPECT_EQ(config.num_target_layers, 52);
  EXPECT_EQ(config.dflash2.selector_rank, 256);
  EXPECT_THAT(config.warnings, IsEmpty());
}

TEST(Dflash2DrafterConfig, KeysMayBeAtTheTopLevel) {
  const DrafterConfig config = accepted(
      qwen38_27b_dflash2(), R"({"conv_kernel_size": 3, "conv_group_size": 32, "selector_rank": 8, "selector_top_k": 4,
                                "dflash_config": {"conv_kernel_size": null, "conv_group_size": null,
                                                  "selector_rank": null, "selector_top_k": null}})");
  EXPECT_EQ(config.dflash2.conv_kernel_size, 3);
  EXPECT_EQ(config.dflash2.conv_group_size, 32);
  EXPECT_EQ(config.dflash2.selector_rank, 8);
  EXPECT_EQ(config.dflash2.selector_top_k, 4);
  EXPECT_THAT(config.warnings, IsEmpty());
}

// Without is_causal the family's sliding layers are causal like any other's.
TEST(Dflash2DrafterConfig, SlidingLayersAreCausalByDefault) {
  EXPECT_EQ(causality(accepted(qwen38_27b_dflash2(), R"({"is_causal": null})")), std::vector<bool>(5, true));
}

TEST(Dflash2DrafterConfig, GoldenFixtures) {
  struct Fixture {
    const char* name;
    int32_t block_size, kernel, group, rank, top_k;
    std::vector<bool> causal;
    std::vector<int32_t> windows;
  };
  const std::vector<Fixture> fixtures = {
      {"dflash2_plain", 8, 2, 16, 32, 8, {false, false}, {0, 0}},
      {"dflash2_block_nested_wins", 6, 2, 16, 32, 4, {false, false}, {0, 0}},
      {"dflash2_kernel3_group32", 8, 3, 32, 24, 5, {false, false}, {0, 0}},
      {"dflash2_sliding_default_causal", 8, 2, 16, 32, 8, {true, true}, {7, 7}},
      {"dflash2_window_softcap", 16, 2, 16, 32, 16, {false, false}, {24, 24}},
  };
  for (const Fixture& fixture : fixtures) {
    SCOPED_TRACE(fixture.name);
    const DrafterConfig config = read_golden(fixture.name);
    EXPECT_EQ(config.family, DrafterFamily::dflash2);
    EXPECT_EQ(config.layout, BlockLayout::in_place);
    EXPECT_EQ(config.block_size, fixture.block_size);
    EXPECT_EQ(config.dflash2.conv_kernel_size, fixture.kernel);
    EXPECT_EQ(config.dflash2.conv_group_size, fixture.group);
    EXPECT_EQ(config.dflash2.selector_rank, fixture.rank);
    EXPECT_EQ(config.dflash2.selector_top_k, fixture.top_k);
    EXPECT_EQ(causality(config), fixture.causal);
    EXPECT_EQ(windows(config), fixture.windows);
  }
  EXPECT_THAT(read_golden("dflash2_block_nested_wins").warnings.size(), 1);
  EXPECT_EQ(read_golden("dflash2_window_softcap").output_multiplier, 0.5f);
  EXPECT_EQ(read_golden("dflash2_window_softcap").final_logit_softcapping, 20.0f);
}

TEST(Dflash2DrafterConfig, Demo) {
  const DrafterConfig config = read_folder("demo/pycode-14m-dflash2");
  EXPECT_EQ(config.family, DrafterFamily::dflash2);
  EXPECT_EQ(config.trained_width(), 7);
  EXPECT_EQ(config.dflash2.selector_rank, 64);
  EXPECT_EQ(config.dflash2.selector_top_k, 16);
  EXPECT_THAT(config.warnings, IsEmpty());
}

TEST(Dflash2DrafterConfig, EachKeyIsRequired) {
  for (const std::string key : {"conv_kernel_size", "conv_group_size", "selector_rank", "selector_top_k"}) {
    const std::string absent = R"({"dflash_config": {")" + key + R"(": null}})";
    expect_refused(qwen38_27b_dflash2(), absent.c_str(), Code::not_found,
                   "key '" + key + "' is missing, expected a positive integer, at the top level or in dflash_config");
    const std::string zero = R"({"dflash_config": {")" + key + R"(": 0}})";
    expect_refused(qwen38_27b_dflash2(), zero.c_str(), Code::corrupt_file,
                   "key 'dflash_config." + key + "' is 0, expected an integer from 1 to 16777216");
  }
}

TEST(Dflash2DrafterConfig, Refusals) {
  expect_refused(qwen38_27b_dflash2(), R"({"dflash_config": {"conv_group_size": 48}})", Code::corrupt_file,
                 "key 'dflash_config.conv_group_size' is 48, expected a divisor of hidden_size 5120");
  expect_refused(qwen38_27b_dflash2(), R"({"dflash_config": {"selector_top_k": 248321}})", Code::corrupt_file,
                 "key 'dflash_config.selector_top_k' is 248321, expected at most vocab_size 248320");
  expect_refused(qwen38_27b_dflash2(), R"({"draft_vocab_size": 8, "dflash_config": {"selector_top_k": 9}})",
                 Code::corrupt_file, "key 'dflash_config.selector_top_k' is 9, expected at most draft_vocab_size 8");
  expect_refused(qwen38_27b_dflash2(), R"({"dflash_config": {"markov_rank": 256}})", Code::unsupported,
                 "key 'dflash_config.markov_rank' is 256, expected 0, false or no such key in a DFlash2 drafter; it "
                 "belongs to a DSpark drafter");
  expect_refused(qwen38_27b_dflash2(), R"({"dflash_config": {"projector_type": "dspark"}})", Code::unsupported,
                 R"(key 'dflash_config.projector_type' is "dspark", expected "dflash" or no such key with )"
                 "architecture DFlash2DraftModel");
  expect_refused(qwen38_27b_dflash2(), R"({"sample_from_anchor": true})", Code::unsupported,
                 "key 'sample_from_anchor' is true, expected false or no such key in a DFlash2 drafter, whose block is "
                 "in place");
  expect_refused(qwen38_27b_dflash2(), R"({"dflash_config": {"block_size": 1}})", Code::unsupported,
                 "key 'dflash_config.block_size' is 1, expected at least 2: a block of 1 in place has no drafts");
  expect_refused(qwen38_27b_dflash2(), R"({"dflash_config": {"target_layer_ids": [-1, 5]}})", Code::corrupt_file,
                 "key 'dflash_config.target_layer_ids[0]' is -1, expected an integer from 0 to 63");
  // Its training code assumes no layers, unlike older ones.
  expect_refused(qwen38_27b_dflash2(), R"({"dflash_config": {"target_layer_ids": null}})", Code::not_found,
                 "key 'target_layer_ids' is missing, expected a list of target layers");
}

}  // namespace
}  // namespace blockdraft
