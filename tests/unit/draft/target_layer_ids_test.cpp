#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "draft/drafter_config.h"
#include "support/drafter_examples.h"

namespace blockdraft {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(TargetLayerIds, FieldFault1_KeepTheOrderOfTheFile) {
  EXPECT_THAT(read_ok(R"({"dflash_config": {"target_layer_ids": [4, 0, 35, 3]}})").target_layer_ids,
              ElementsAre(4, 0, 35, 3));
}

TEST(TargetLayerIds, NeedNoLayerCount) {
  const DrafterConfig config = read_ok(R"({"num_target_layers": null})");
  EXPECT_EQ(config.num_target_layers, std::nullopt);
  EXPECT_THAT(config.target_layer_ids, ElementsAre(1, 9, 17, 25, 33));
}

TEST(TargetLayerIds, FieldFault1_OtherSpellingsCountFromTheEmbeddings) {
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
  EXPECT_THAT(config.warnings,
              ElementsAre("config.json: no target_layer_ids; outputs of layers [1, 9, 17, 25, 33] computed from "
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

}  // namespace
}  // namespace blockdraft
