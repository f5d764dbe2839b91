#include <functional>
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

// The four places of a draft key, the one that wins first.
const std::vector<std::string> kPlaces = {"/dspark_block_size", "/dflash_config/block_size",
                                          "/dspark_config/block_size", "/block_size"};
const std::vector<std::string> kNames = {"dspark_block_size", "dflash_config.block_size", "dspark_config.block_size",
                                         "block_size"};

Json without_block_size() { return patched(qwen3_4b(), R"({"block_size": null})"); }

TEST(DraftKeyPrecedence, FieldFault7_EachPlaceAloneCounts) {
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

TEST(DraftKeyPrecedence, FieldFault7_EveryDraftKeyIsLookedUpInEveryPlace) {
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

TEST(DraftKeyPrecedence, FieldFault2_NoiseTokenIsAnAliasOfTheMask) {
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

}  // namespace
}  // namespace blockdraft
