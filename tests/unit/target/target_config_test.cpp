#include "target/target_config.h"

#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "support/config_refusal.h"

namespace blockdraft {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const std::filesystem::path kSource = BLOCKDRAFT_SOURCE_DIR;

Json base() {
  return Json::parse(R"({"architectures": ["Qwen3ForCausalLM"], "attention_bias": false, "eos_token_id": 151645,
                         "head_dim": 128, "hidden_act": "silu", "hidden_size": 2560, "intermediate_size": 9728,
                         "max_position_embeddings": 40960, "num_attention_heads": 32, "num_hidden_layers": 3,
                         "num_key_value_heads": 8, "rms_norm_eps": 1e-06, "rope_theta": 1000000,
                         "tie_word_embeddings": true, "use_sliding_window": false, "vocab_size": 151936})");
}

// `patch` is a merge patch: null removes a key.
Result<TargetConfig> read(const char* patch) {
  Json document = base();
  document.merge_patch(Json::parse(patch));
  return read_target_config(document, "config.json");
}

TEST(TargetConfig, ReadsAllKeys) {
  const auto config = read("{}");
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(config->architecture, "Qwen3ForCausalLM");
  EXPECT_EQ(config->transformer.num_hidden_layers, 3);
  EXPECT_EQ(config->transformer.max_position_embeddings, 40960);
  EXPECT_TRUE(config->tie_word_embeddings);
  EXPECT_THAT(config->eos_token_ids, ElementsAre(151645));
}

TEST(TargetConfig, HeadIsUntiedUnlessTheConfigSaysSo) {
  const auto config = read(R"({"tie_word_embeddings": null})");
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_FALSE(config->tie_word_embeddings);
}

TEST(TargetConfig, EosIsOneIdAListOrNone) {
  EXPECT_THAT(read(R"({"eos_token_id": [7, 0, 7]})")->eos_token_ids, ElementsAre(7, 0));
  EXPECT_THAT(read(R"({"eos_token_id": []})")->eos_token_ids, IsEmpty());
  EXPECT_THAT(read(R"({"eos_token_id": null})")->eos_token_ids, IsEmpty());
}

TEST(TargetConfig, FullAttentionInEveryLayerIsNoWindow) {
  EXPECT_TRUE(
      read(R"({"layer_types": ["full_attention", "full_attention", "full_attention"], "sliding_window": 4096})").ok());
}

TEST(TargetConfig, ReadsTheDemoTarget) {
  const auto config = read_target_config(kSource / "demo/pycode-14m");
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(config->transformer.hidden_size, 384);
  EXPECT_EQ(config->transformer.num_hidden_layers, 8);
  EXPECT_EQ(config->transformer.num_attention_heads, 6);
  EXPECT_EQ(config->transformer.num_key_value_heads, 2);
  EXPECT_EQ(config->transformer.vocab_size, 4160);
  EXPECT_EQ(config->transformer.max_position_embeddings, 2048);
  EXPECT_EQ(config->transformer.rope.rope_theta, 10000.0);
  EXPECT_TRUE(config->tie_word_embeddings);
  EXPECT_THAT(config->eos_token_ids, ElementsAre(0));
}

TEST(TargetConfig, ReadsTheGoldenTargets) {
  const auto tied = read_target_config(kSource / "tests/golden/target_qwen3_tied");
  ASSERT_TRUE(tied.ok()) << tied.error().message;
  EXPECT_TRUE(tied->tie_word_embeddings);
  EXPECT_EQ(tied->transformer.rope.rope_theta, 10000.0);
  EXPECT_THAT(tied->eos_token_ids, IsEmpty());

  const auto untied = read_target_config(kSource / "tests/golden/target_qwen3_untied_headdim128");
  ASSERT_TRUE(untied.ok()) << untied.error().message;
  EXPECT_FALSE(untied->tie_word_embeddings);
  EXPECT_EQ(untied->transformer.head_dim, 128);
  EXPECT_EQ(untied->transformer.query_size(), 384);
  EXPECT_EQ(untied->transformer.key_value_size(), 128);
  EXPECT_EQ(untied->transformer.rope.rope_theta, 1e6);
}

TEST(TargetConfig, LlamaHasNoNormsOnItsHeads) {
  for (const char* name : {"target_llama3_scaled", "target_llama_plain_tied"}) {
    const auto config = read_target_config(kSource / "tests/golden" / name);
    ASSERT_TRUE(config.ok()) << config.error().message;
    EXPECT_EQ(config->architecture, "LlamaForCausalLM");
    EXPECT_FALSE(config->transformer.qk_norm);
  }
  const auto scaled = read_target_config(kSource / "tests/golden/target_llama3_scaled");
  EXPECT_EQ(scaled->transformer.rope.type, RopeType::llama3);
  EXPECT_EQ(scaled->transformer.rope.original_max_position_embeddings, 64);
}

// A folder of its own, removed at the end.
class TargetFolder : public testing::Test {
 protected:
  void SetUp() override {
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = std::filesystem::path(testing::TempDir()) / (std::string("blockdraft_target_config_") + info->name());
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    write("config.json", base().dump());
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void write(const char* name, const std::string& text) { std::ofstream(folder_ / name) << text; }

  std::filesystem::path folder_;
};

TEST_F(TargetFolder, NeedsNoGenerationConfig) {
  const auto config = read_target_config(folder_);
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_THAT(config->eos_token_ids, ElementsAre(151645));
}

TEST_F(TargetFolder, UnitesTheEosIdsOfBothFiles) {
  write("generation_config.json", R"({"eos_token_id": [151645, 151643], "temperature": 0.6})");
  EXPECT_THAT(read_target_config(folder_)->eos_token_ids, ElementsAre(151645, 151643));
  write("generation_config.json", R"({"eos_token_id": 151643})");
  EXPECT_THAT(read_target_config(folder_)->eos_token_ids, ElementsAre(151645, 151643));
  write("generation_config.json", R"({"eos_token_id": null})");
  EXPECT_THAT(read_target_config(folder_)->eos_token_ids, ElementsAre(151645));
}

TEST_F(TargetFolder, RefusesBadGenerationConfigs) {
  const std::string path = (folder_ / "generation_config.json").string();
  write("generation_config.json", R"({"eos_token_id": [151936]})");
  EXPECT_EQ(read_target_config(folder_).error().message,
            path + ": key 'eos_token_id[0]' is 151936, expected an integer from 0 to 151935");
  write("generation_config.json", "[]");
  EXPECT_EQ(read_target_config(folder_).error().message, path + ": found a list, expected an object");
  write("generation_config.json", "{");
  EXPECT_EQ(read_target_config(folder_).error().code, Code::corrupt_file);
}

TEST_F(TargetFolder, RefusesAMissingConfig) {
  std::filesystem::remove(folder_ / "config.json");
  EXPECT_EQ(read_target_config(folder_).error().code, Code::not_found);
}

TEST(TargetConfig, RefusesADocumentThatIsNoObject) {
  const auto config = read_target_config(Json::parse("[1]"), "config.json");
  ASSERT_FALSE(config.ok());
  EXPECT_EQ(config.error().message, "config.json: found a list, expected an object");
}

class TargetRefusal : public testing::TestWithParam<Refusal> {};

TEST_P(TargetRefusal, NamesKeyFoundAndExpected) { expect_refusal(read(GetParam().patch), GetParam()); }

INSTANTIATE_TEST_SUITE_P(
    All, TargetRefusal,
    testing::Values(
        Refusal{
            "no_architecture", R"({"architectures": null})", Code::not_found,
            R"(key 'architectures' is missing, expected a target of architecture ["Qwen3ForCausalLM"] or ["LlamaForCausalLM"])"},
        Refusal{
            "empty_architectures", R"({"architectures": []})", Code::unsupported,
            R"(key 'architectures' is [], expected a target of architecture ["Qwen3ForCausalLM"] or ["LlamaForCausalLM"])"},
        Refusal{"drafter", R"({"architectures": ["DFlashDraftModel"]})", Code::unsupported,
                R"(key 'architectures' is ["DFlashDraftModel"], expected a target of architecture )"
                R"(["Qwen3ForCausalLM"] or ["LlamaForCausalLM"])"},
        Refusal{"architecture_text", R"({"architectures": "Qwen3ForCausalLM"})", Code::corrupt_file,
                R"(key 'architectures' is "Qwen3ForCausalLM", expected a list of strings)"},
        Refusal{"window", R"({"use_sliding_window": true, "sliding_window": 4096})", Code::unsupported,
                "key 'use_sliding_window' is true, expected false"},
        Refusal{"sliding_layer", R"({"layer_types": ["full_attention", "sliding_attention", "full_attention"]})",
                Code::unsupported,
                R"(key 'layer_types' is ["full_attention", "sliding_attention", "full_attention"], expected )"
                "full_attention in every layer"},
        Refusal{"layer_count", R"({"layer_types": ["full_attention"]})", Code::corrupt_file,
                R"(key 'layer_types' is ["full_attention"], expected one entry for each of 3 layers, not 1)"},
        Refusal{"no_max_positions", R"({"max_position_embeddings": null})", Code::not_found,
                "key 'max_position_embeddings' is missing, expected an integer from 1 to 16777216"},
        Refusal{"eos_outside", R"({"eos_token_id": 151936})", Code::corrupt_file,
                "key 'eos_token_id' is 151936, expected an integer from 0 to 151935"},
        Refusal{"eos_negative", R"({"eos_token_id": [1, -1]})", Code::corrupt_file,
                "key 'eos_token_id[1]' is -1, expected an integer from 0 to 151935"},
        Refusal{"eos_text", R"({"eos_token_id": "</s>"})", Code::corrupt_file,
                R"(key 'eos_token_id' is "</s>", expected an integer from 0 to 151935)"},
        Refusal{"tie_number", R"({"tie_word_embeddings": 1})", Code::corrupt_file,
                "key 'tie_word_embeddings' is 1, expected true or false"},
        Refusal{"dynamic_rope", R"({"rope_scaling": {"rope_type": "dynamic", "factor": 8.0}})", Code::unsupported,
                R"(key 'rope_scaling.rope_type' is "dynamic", expected rope type default, linear, llama3 or yarn)"}),
    refusal_name);

}  // namespace
}  // namespace blockdraft
