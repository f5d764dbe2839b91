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

TEST_P(DrafterLayersOf, FieldFault4_CausalityAndWindow) {
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

INSTANTIATE_TEST_SUITE_P(
    Layers, DrafterRefusal,
    testing::Values(
        Refusal{
            "count", R"({"layer_types": ["full_attention"]})", Code::corrupt_file,
            R"(key 'layer_types' is ["full_attention"], expected one entry for each of num_hidden_layers 5, not 1)"},
        Refusal{"text", R"({"layer_types": "full_attention"})", Code::corrupt_file,
                R"(key 'layer_types' is "full_attention", expected a list of strings)"},
        Refusal{"other_type", R"({"num_hidden_layers": 2, "layer_types": ["full_attention", "linear_attention"]})",
                Code::unsupported,
                R"(key 'layer_types[1]' is "linear_attention", expected "full_attention" or "sliding_attention")"},
        Refusal{"no_window", "{" TWO_SLIDE R"("sliding_window": null})", Code::not_found,
                "key 'sliding_window' is missing, expected an integer from 1 to 2147483647"},
        Refusal{"window_zero", "{" TWO_SLIDE R"("sliding_window": 0})", Code::corrupt_file,
                "key 'sliding_window' is 0, expected an integer from 1 to 2147483647"},
        Refusal{"switch_text", "{" TWO_SLIDE R"("sliding_window": 8, "use_sliding_window": "no"})", Code::corrupt_file,
                R"(key 'use_sliding_window' is "no", expected true or false)"},
        Refusal{"is_causal_text", R"({"is_causal": "false"})", Code::corrupt_file,
                R"(key 'is_causal' is "false", expected true or false)"},
        Refusal{"causal_number", R"({"dflash_config": {"causal": 1}})", Code::corrupt_file,
                "key 'dflash_config.causal' is 1, expected true or false"},
        Refusal{"is_causal_nested", R"({"dflash_config": {"is_causal": false}})", Code::corrupt_file,
                "key 'dflash_config.is_causal' is false, expected that key at the top level"},
        Refusal{"causal_on_top", R"({"causal": false})", Code::corrupt_file,
                "key 'causal' is false, expected that key in dflash_config, or is_causal"},
        Refusal{"causal_in_dspark", R"({"dspark_config": {"causal": false}})", Code::corrupt_file,
                "key 'dspark_config.causal' is false, expected that key in dflash_config"},
        Refusal{"swa_without_window", R"({"layer_types": null, "use_sliding_window": null, "use_swa": true})",
                Code::not_found, "key 'swa_window_size' is missing, expected a window, as 'use_swa' is true"},
        Refusal{"swa_window_zero", R"({"layer_types": null, "use_sliding_window": null, "use_swa": true,
                                       "swa_window_size": 0})",
                Code::corrupt_file, "key 'swa_window_size' is 0, expected an integer from 1 to 2147483647"},
        Refusal{"swa_switched_off", R"({"layer_types": null, "use_swa": true, "swa_window_size": 8})",
                Code::corrupt_file, "key 'use_swa' is true, expected false, as use_sliding_window is"}),
    refusal_name);

}  // namespace
}  // namespace blockdraft
